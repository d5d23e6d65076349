package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// buildVersion is set by the linker (-X main.buildVersion=...).
var buildVersion = ""

func version() string {
	if buildVersion != "" {
		return buildVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// versionDocument is the document winkfs.version/v1.
type versionDocument struct {
	Schema   string `json:"schema"`
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernel   string `json:"kernel"`
}

func newVersionCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "show the version", Flags: []cli.Flag{jsonFlag(e)},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return runVersion(e)
		},
	}
}

func runVersion(e *env) error {
	doc := versionDocument{
		Schema: "winkfs.version/v1", Version: version(), Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Kernel: kernelRelease(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				doc.Commit = s.Value
			case "vcs.modified":
				doc.Modified = s.Value == "true"
			}
		}
	}
	if e.globals.json {
		return e.emit(doc)
	}
	fmt.Fprintf(e.stdout, "winkfs %s (%s, %s, Linux %s)\n", doc.Version, doc.Go, doc.Platform, doc.Kernel)
	return nil
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
