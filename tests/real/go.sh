#!/bin/bash
# The Go standard library's own tests of files and processes, with the installed
# Go. The test binaries run in the tested place, with their temporary files
# there.
. "$(dirname "$0")/lib.sh"
need go

packages=("${@:-}")
[ -n "${packages[0]}" ] || packages=(os io/fs io/ioutil path/filepath syscall os/exec os/signal internal/poll archive/zip archive/tar
	embed mime/multipart net/http/internal text/template debug/elf go/build compress/gzip bufio io)

run_go() {
	local dir=$1 results=$2 p bin at
	for p in "${packages[@]}"; do
		bin=$work/go/${p//\//_}.test
		mkdir -p "$work/go"
		[ -x "$bin" ] || go test -c -o "$bin" "$p" || continue
		[ -x "$bin" ] || continue # no tests
		# The tests read their testdata from where the sources lie.
		at=$dir/src/$p
		mkdir -p "$dir/tmp" "$(dirname "$at")"
		cp -r "$(go env GOROOT)/src/$p" "$at"
		(cd "$at" && TMPDIR="$dir/tmp" timeout "${REAL_TIMEOUT:-600}" "$bin" -test.v -test.short 2>&1) |
			sed -nE 's/^ *--- (PASS|FAIL|SKIP): ([^ ]*).*/\2 \1/p' | sort -u | sed "s|^|$p |"
	done >"$results"
}

both go run_go
