package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// makeProject makes a project for npm that depends on as many packages, each of
// 20 files, whose tarballs lie below vendor/.
func makeProject(dir string, packages int) error {
	vendor := filepath.Join(dir, "vendor")
	if err := os.MkdirAll(vendor, 0o755); err != nil {
		return err
	}
	needs := map[string]string{}
	for i := range packages {
		name := fmt.Sprintf("package%d", i)
		needs[name] = "file:vendor/" + name + ".tgz"
		if err := makePackage(filepath.Join(vendor, name+".tgz"), name); err != nil {
			return err
		}
	}
	b, err := json.Marshal(map[string]any{"name": "project", "version": "1.0.0", "private": true, "dependencies": needs})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "package.json"), b, 0o644)
}

func makePackage(path, name string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	defer func() { err = errors.Join(err, w.Close(), z.Close(), f.Close()) }()
	if err := addFile(w, "package/package.json", fmt.Sprintf(`{"name": %q, "version": "1.0.0"}`, name)); err != nil {
		return err
	}
	for i := range 20 {
		text := strings.Repeat(fmt.Sprintf("module.exports.%s = %d\n", name, i), 100)
		if err := addFile(w, fmt.Sprintf("package/lib/part%d.js", i), text); err != nil {
			return err
		}
	}
	return nil
}

func addFile(w *tar.Writer, name, text string) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err := io.WriteString(w, text)
	return err
}

// npmInstall installs with npm's cache in the view.
func npmInstall(_ *system, dir string) (time.Duration, error) {
	return quiet(filepath.Join(dir, "npm"), "npm", "install", "--offline", "--no-audit", "--no-fund", "--cache", ".cache")
}

func removeInstalled(_ *system, dir string) error {
	var errs []error
	for _, name := range []string{"node_modules", ".cache", "package-lock.json"} {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, "npm", name)))
	}
	return errors.Join(errs...)
}
