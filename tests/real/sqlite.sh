#!/bin/bash
# SQLite's own tests (test/*.test by its testfixture): those of the pager, the
# write-ahead log, locks, crashes, I/O errors and memory maps, or those that match
# the patterns given, as in `sqlite.sh 'fts*'`; `sqlite.sh veryquick` runs that
# suite as a whole, which leaves out the slow ones. Each script runs in a
# directory of its own in the tested place.
. "$(dirname "$0")/lib.sh"
need make gcc tclsh apt-get dpkg-source

src=$("$here/fetch.sh" sqlite3 "$work")
if [ ! -x "$src/testfixture" ]; then
	(cd "$src" && ./configure --enable-all --with-tcl=/usr/lib/tcl8.6 && make -j"$jobs" testfixture) >"$work/sqlite-build.log" 2>&1
fi
patterns=("${@:-}")
[ -n "${patterns[0]}" ] || patterns=('pager*' 'wal*' 'journal*' 'crash*' 'io*' 'lock*' 'mmap*' 'vacuum*' 'backup*' 'incrvacuum*' 'autovacuum*'
	'atomic*' 'avtrans' 'bigfile*' 'bigmmap' 'capi*' 'chunksize' 'delete_db' 'diskfull' 'e_vacuum' 'e_wal*' 'exclusive*' 'filectrl' 'filefmt'
	'hook*' 'jrnlmode*' 'lastinsert' 'mjournal' 'memdb*' 'multiplex*' 'nolock' 'oserror' 'pragma*' 'quota*' 'readonly' 'rollback*' 'savepoint*'
	'shared*' 'shmlock' 'shrink' 'snapshot*' 'stmtvtab*' 'subjournal' 'superlock' 'symlink*' 'sync*' 'syscall' 'temp*' 'tkt*' 'trans*'
	'unixexcl' 'uri*' 'walcrash*' 'writecrash' 'zerodamage' 'zipfile*' 'cksumvfs' 'attach*' 'cacheflush' 'busy*' 'corrupt*' 'sidedelete')

scripts() { (cd "$src/test" && for p in "${patterns[@]}"; do ls $p.test 2>/dev/null; done | sort -u | grep -vE "${REAL_SKIP:-^$}"); }

# run_script DIR RESULTS SCRIPT runs one script and prints a line for each case.
# Names of cases may repeat within a script.
run_script() {
	local dir=$1/${3%.test} log=$2/${3%.test}.log
	rm -rf "$dir"; mkdir -p "$dir"
	(cd "$dir" && timeout -k 10 "${REAL_TIMEOUT:-900}" "$src/testfixture" "$src/test/$3" >"$log" 2>&1; echo "ended $?" >>"$log")
	rm -rf "$dir"
	sed -nE 's/^([^ ]+)\.\.\. (Ok|Omitted)$/\1 \2/p; s/^! ([^ ]+) expected:.*/\1 FAILED/p; s/^([0-9]+ errors out of [0-9]+ tests).*/\1/p; s/^ended /ended with /p' "$log" |
		sed "s/^/${3%.test} /"
}
export -f run_script
export src REAL_TIMEOUT

run_sqlite() {
	# Some scripts have as many cases as a path has room: both are equally long.
	local dir=$1/$(printf '%*s' $((150 - ${#1})) '' | tr ' ' d) results=$2 out=$2.out
	rm -rf "$out"; mkdir -p "$out" "$dir"
	chmod 777 "$out"
	scripts | xargs -P "$jobs" -I{} bash -c 'run_script "$@" >"$2/$3.results"' _ "$dir" "$out" {}
	cat "$out"/*.results >"$results"
}

both sqlite run_sqlite
