package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// treeFiles is the number of files of the tree, that of DESIGN.md's table.
const treeFiles = 11_478

// source is the lower directory: tree/ is a git repository, big.bin a large
// file, module/ a Go module, npm/ a project for npm. Beside it lie what workloads take in.
type source struct {
	dir  string
	tar  string // tree/ without .git
	bare string // the repository to clone
	big  int64  // size of big.bin
}

func makeSource(c *config) (*source, error) {
	s := &source{
		dir:  filepath.Join(c.dir, "lower"),
		tar:  filepath.Join(c.dir, "tree.tar"),
		bare: filepath.Join(c.dir, "bare.git"),
		big:  scaled(c, 1<<30),
	}
	tree := filepath.Join(s.dir, "tree")
	if err := makeTree(tree, int(scaled(c, treeFiles))); err != nil {
		return nil, err
	}
	if err := run(tree, "tar", "-cf", s.tar, "."); err != nil {
		return nil, err
	}
	if err := makeBig(filepath.Join(s.dir, "big.bin"), s.big); err != nil {
		return nil, err
	}
	if err := makeModule(filepath.Join(s.dir, "module")); err != nil {
		return nil, err
	}
	if err := makeProject(filepath.Join(s.dir, "npm"), int(scaled(c, 150))); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"config", "gc.auto", "0"},
		{"add", "-A"},
		{"-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-q", "-m", "all"},
		{"clone", "-q", "--bare", ".", s.bare},
	} {
		if err := run(tree, "git", args...); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func scaled(c *config, n int64) int64 { return max(1, int64(float64(n)*c.scale)) }

var words = strings.Fields(`the value of a file is read by its name and then kept for func return if err nil
	range string int64 buffer path node entry state record write close open lock error case switch default`)

// makeTree makes a deterministic tree like one of sources: eight files a
// directory, sizes of a log-normal distribution around 4 KiB.
func makeTree(dir string, files int) error {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range files {
		d := i / 8
		path := filepath.Join(dir, fmt.Sprintf("area%02d", d%23), fmt.Sprintf("part%d", d%61), fmt.Sprintf("dir%d", d))
		if i%8 == 0 {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
		}
		size := min(int(math.Exp(r.NormFloat64()*1.4+8.3)), 1<<20)
		name := filepath.Join(path, fmt.Sprintf("file%d.txt", i))
		if err := os.WriteFile(name, text(r, size), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// text returns lines of words.
func text(r *rand.Rand, size int) []byte {
	b := make([]byte, 0, size+80)
	for n := 1; len(b) < size; n++ {
		b = append(b, words[r.IntN(len(words))]...)
		if n%10 == 0 {
			b = append(b, '\n')
			continue
		}
		b = append(b, ' ')
	}
	return b[:size]
}

func makeBig(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(block)
	for size > 0 {
		n, err := f.Write(block[:min(size, int64(len(block)))])
		if err != nil {
			return err
		}
		size -= int64(n)
	}
	return f.Sync()
}

// makeModule makes a Go module of 60 packages with the standard library alone.
func makeModule(dir string) error {
	const packages, files = 60, 6
	write := func(name, content string) error {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(content), 0o644)
	}
	var imports, calls strings.Builder
	for p := range packages {
		fmt.Fprintf(&imports, "\t%q\n", fmt.Sprintf("example.org/bench/p%d", p))
		fmt.Fprintf(&calls, "\tn += p%d.F0(n)\n", p)
		for f := range files {
			src := fmt.Sprintf("package p%d\n\nimport (\n\t\"fmt\"\n\t\"sort\"\n\t\"strings\"\n)\n", p)
			for i := range 12 {
				id := f*12 + i
				src += fmt.Sprintf("\n// F%d is work for the compiler.\nfunc F%d(n int) int {\n\ts := strings.Split(fmt.Sprint(n, %d), \"1\")\n\tsort.Strings(s)\n\treturn len(s) + %d\n}\n", id, id, id, id)
			}
			if err := write(fmt.Sprintf("p%d/f%d.go", p, f), src); err != nil {
				return err
			}
		}
	}
	main := fmt.Sprintf("package main\n\nimport (\n\t\"fmt\"\n\n%s)\n\nfunc main() {\n\tn := 0\n%s\tfmt.Println(n)\n}\n", imports.String(), calls.String())
	if err := write("main.go", main); err != nil {
		return err
	}
	return write("go.mod", "module example.org/bench\n\ngo 1.24\n")
}
