#!/bin/bash
# git's own tests (t/), all of them or those that match the patterns given, as in
# `git.sh 't0*' 't5[0-4]*'`. Each trash directory lies in the tested place.
. "$(dirname "$0")/lib.sh"
need make gcc prove perl apt-get dpkg-source

src=$("$here/fetch.sh" git "$work")
[ -x "$src/git" ] || make -C "$src" -j"$jobs" NO_CURL=1 NO_TCLTK=1 NO_GETTEXT=1 NO_OPENSSL=1 NO_EXPAT=1 all >"$work/git-build.log" 2>&1
patterns=("${@:-t[0-9]*}")

tests() { (cd "$src/t" && for p in "${patterns[@]}"; do ls $p.sh; done | sort -u | grep -vE "${REAL_SKIP:-^$}"); }

# verdicts_of LOG SCRIPT prints a line for each case. The commands under test
# print to the log, too, and may leave their last line open: a verdict counts if
# it has the next number, wherever it begins.
verdicts_of() {
	awk -v script="$2" '
		match($0, /(not )?ok [0-9]+ (-|#) ?/) {
			v = substr($0, RSTART, 3) == "not" ? "not-ok" : "ok"
			split(substr($0, RSTART, RLENGTH), word, " ")
			if (word[v == "ok" ? 2 : 3] != n + 1) next
			n++
			if (/# skip/) v = "skipped"
			if (/# TODO known breakage/) v = "known-breakage"
			print script, n, v
		}
		/^1\.\.[0-9]+/ {whole = 1}
		END {if (!whole) print script, "ended-early"}' "$1"
}

run_git() {
	local dir=$1 results=$2 out=$2.out
	rm -rf "$out"; mkdir -p "$out"
	(cd "$src/t" && tests | TEST_OUTPUT_DIRECTORY="$out" timeout "${REAL_TIMEOUT:-7200}" \
		prove -j"$jobs" --exec bash - :: --root="$dir" --verbose-log >"$out/prove.log" 2>&1) || true
	local f
	for f in "$out"/test-results/*.out; do
		verdicts_of "$f" "$(basename "$f" .out)"
	done >"$results"
}

both git run_git
