package model

import (
	"encoding/json"
	"fmt"
	osexec "os/exec"
	"path/filepath"
	"time"
)

// commandPart is the part that only commands in the sandbox change.
const commandPart = "commands"

// commandEvery is how long it takes until the next command.
const commandEvery = 300 * time.Millisecond

// scripts are run one after the other with a growing number as $1. They print
// the same wherever they run.
var scripts = []string{
	`mkdir -p a/b && seq $1 >a/b/$1 && sort -rn a/b/$1 | head -3`,
	`printf '%s\n' one two "$1" >>text && wc -l <text`,
	`sed -i "s/two/$1/" text && md5sum <text`,
	`ls | sort | tail -20 | xargs -d '\n' -n1 test -e && find . -type f | sort | xargs -d '\n' cat | cksum`,
	`cp -a a copy$1 && mv copy$1 moved$1 && find moved$1 | sort | head -20 | sed "s/$1/N/"`,
	`tar cf - a 2>/dev/null | tar xf - -C . && rm -rf moved* && ls -A | sort`,
	`printf '#!/bin/sh\necho ran $0 %s\n' $1 >run.sh && chmod 755 run.sh && ./run.sh`,
	`rm -rf a/b; ln -sf text link; cat link | tail -1; exit 3`,
	`for i in 1 2 3; do (for j in 1 2 3 4 5; do echo $i >>many; done) & done; wait; sort -o many many; wc -c <many`,
	`rm -f many text && ls -A | sort`,
}

// runCommands runs scripts in the sandbox and on the plain directory, which
// must give the same. Each fourth runs in the sandbox alone and is undone.
func (s *soak) runCommands() error {
	for n := 0; s.pause(commandEvery); n++ {
		script := scripts[n%len(scripts)]
		if err := s.command(script, n); err != nil {
			return fmt.Errorf("command %d, %q: %w", n, script, err)
		}
		s.count("commands", 1)
	}
	return nil
}

// command runs a script on both sides and compares.
func (s *soak) command(script string, n int) error {
	if n%4 == 3 {
		return s.undone([]string{"sh", "-c", script + "; echo $1 >undone", "sh", fmt.Sprint(n)})
	}
	argv := []string{"sh", "-c", script, "sh", fmt.Sprint(n)}
	r := s.run(append(s.exec(), argv...)...)
	cmd := osexec.Command(argv[0], argv[1:]...)
	cmd.Dir = filepath.Join(s.plain, commandPart)
	want, _ := cmd.Output() // its exit status is compared
	if code := cmd.ProcessState.ExitCode(); r.Code != code || r.Stdout != string(want) {
		return fmt.Errorf("got exit status %d and %q, want %d and %q (%s)", r.Code, r.Stdout, code, want, r.Stderr)
	}
	return s.sameCommandPart()
}

// exec returns the beginning of a winkfs command that runs another.
func (s *soak) exec(flags ...string) []string {
	args := append([]string{"exec", "-w", s.w.Name, "--timeout", "0", "--cwd", "/workspace/" + commandPart}, flags...)
	return append(args, "--")
}

// undone runs a command in the sandbox and takes back what it did.
func (s *soak) undone(argv []string) error {
	r := s.run(append(s.exec("--json"), argv...)...)
	var result struct {
		Exec uint64 `json:"exec"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &result); err != nil {
		return fmt.Errorf("exec --json: %w: %s%s", err, r.Stdout, r.Stderr)
	}
	if r := s.run("undo", "-w", s.w.Name, "--yes", fmt.Sprintf("exec:%d", result.Exec)); r.Code != 0 {
		return fmt.Errorf("undo: exit status %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	s.count("undos", 1)
	return s.sameCommandPart()
}

func (s *soak) sameCommandPart() error {
	p := &Pair{Subject: filepath.Join(s.w.Mount, commandPart), Reference: filepath.Join(s.plain, commandPart)}
	return sameTrees(p, "after a command")
}
