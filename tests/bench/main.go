package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
)

// config is what the environment asks for.
type config struct {
	winkfs string
	dir    string
	runs   int
	scale  float64
	rows   *regexp.Regexp
}

func main() {
	c, err := configure()
	if err == nil {
		err = bench(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func configure() (*config, error) {
	c := &config{}
	flag.StringVar(&c.winkfs, "winkfs", "bin/winkfs", "the `binary` to measure")
	flag.Parse()
	var err error
	if c.winkfs, err = filepath.Abs(c.winkfs); err != nil {
		return nil, err
	}
	if c.runs, err = strconv.Atoi(cmp.Or(os.Getenv("BENCH_RUNS"), "5")); err != nil || c.runs < 1 {
		return nil, fmt.Errorf("BENCH_RUNS is no number of runs: %q", os.Getenv("BENCH_RUNS"))
	}
	if c.scale, err = strconv.ParseFloat(cmp.Or(os.Getenv("BENCH_SCALE"), "1"), 64); err != nil || c.scale <= 0 {
		return nil, fmt.Errorf("BENCH_SCALE is no factor: %q", os.Getenv("BENCH_SCALE"))
	}
	if c.rows, err = regexp.Compile(os.Getenv("BENCH_ROWS")); err != nil {
		return nil, fmt.Errorf("BENCH_ROWS: %w", err)
	}
	if c.dir, err = os.MkdirTemp(os.Getenv("BENCH_DIR"), "winkfs-bench-"); err != nil {
		return nil, err
	}
	return c, nil
}

var errOverBudget = errors.New("some rows are over their budget")

// bench measures all rows and prints each as it is done.
func bench(c *config) (err error) {
	defer os.RemoveAll(c.dir)
	fmt.Println("making the source tree ...")
	s, err := makeSource(c)
	if err != nil {
		return fmt.Errorf("make source tree: %w", err)
	}
	systems := allSystems(c, s)
	defer func() {
		for _, sys := range systems {
			sys.end()
		}
	}()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	for _, sys := range systems {
		if err := sys.mount(); err != nil {
			sys.missing = err
			fmt.Printf("%s is left out: %v\n", sys.name, err)
		}
	}
	if err := systems[0].missing; err != nil {
		return err
	}
	printHead(os.Stdout, systems)
	over := false
	for _, r := range rows(c, s) {
		if !c.rows.MatchString(r.name) {
			continue
		}
		select {
		case <-stop:
			return errors.New("interrupted")
		default:
		}
		if err := r.lacks(); err != nil {
			fmt.Printf("%s is left out: %v\n", r.name, err)
			continue
		}
		res := measure(c, r, systems)
		printRow(os.Stdout, r, systems, res)
		over = over || res.verdict(r) == exceeded
	}
	if over {
		return errOverBudget
	}
	return nil
}
