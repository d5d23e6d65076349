package main

import (
	"fmt"
	"io"
	"time"
)

func printHead(w io.Writer, systems []*system) {
	fmt.Fprintf(w, "\n%-34s %10s", "workload", native)
	for _, sys := range systems[1:] {
		fmt.Fprintf(w, " %18s", sys.name)
	}
	fmt.Fprintf(w, " %9s\n", "budget")
}

// printRow prints times and, in brackets, the ratio to native.
func printRow(w io.Writer, r row, systems []*system, res *result) {
	fmt.Fprintf(w, "%-34s %10s", r.name, short(res.median(native)))
	for _, sys := range systems[1:] {
		fmt.Fprintf(w, " %18s", cell(res, sys.name))
	}
	fmt.Fprintf(w, " %9s %s\n", budget(r), res.verdict(r))
	for _, sys := range systems {
		if err := res.errs[sys.name]; err != nil {
			fmt.Fprintf(w, "    %s: %v\n", sys.name, err)
		}
	}
}

func cell(res *result, system string) string {
	took := res.median(system)
	switch {
	case res.errs[system] != nil:
		return "failed"
	case took == 0:
		return "-"
	case res.ratio(system) == 0:
		return short(took)
	}
	return fmt.Sprintf("%s (%.2f)", short(took), res.ratio(system))
}

func budget(r row) string {
	switch {
	case r.atMost > 0:
		return short(r.atMost)
	case r.budget > 0:
		return fmt.Sprintf("%.2f", r.budget)
	}
	return "-"
}

// short prints a duration with three digits.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}
