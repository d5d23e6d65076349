# Sourced by the scripts here: a plain directory and a workspace side by side.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

winkfs=${WINKFS_BIN:-$here/../../bin/winkfs}
work=$(realpath -m "${REAL_DIR:-${TMPDIR:-/var/tmp}/winkfs-real}") # sources, builds, results
jobs=${REAL_JOBS:-2}
[ -x "$winkfs" ] || { echo "$winkfs is missing: make build, or set WINKFS_BIN" >&2; exit 2; }

need() {
	local tool
	for tool; do command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 2; }; done
}

# both NAME FUNCTION runs FUNCTION DIR RESULTS once with DIR on the file system
# that $work is on and once with DIR in a workspace, each in an own empty
# directory. FUNCTION writes a line for each check to RESULTS, "name verdict";
# both compares the two and fails when they differ.
both() {
	local name=$1 run=$2 base state
	base=$work/run/$name
	cleanup_mount
	rm -rf "$base"
	mkdir -p "$base/plain" "$base/lower" "$base/mnt"
	state=$base/state
	chmod a+rx "$work" "$work/run" "$base"
	chmod 777 "$base/plain" "$base/lower"

	echo "== $name: plain"
	time "$run" "$base/plain" "$base/plain.results" >"$base/plain.log" 2>&1 || echo "exit status $?" >>"$base/plain.results"

	echo "== $name: workspace"
	WINKFS_STATE_DIR=$state "$winkfs" mount ${REAL_MOUNT_FLAGS:-} --name "real-$name" "$base/lower" "$base/mnt" >"$base/mount.log" 2>&1
	mounted=$base/mnt state_dir=$state
	trap cleanup_mount EXIT
	time "$run" "$base/mnt" "$base/mount.results" >>"$base/mount.log" 2>&1 || echo "exit status $?" >>"$base/mount.results"
	cleanup_mount

	sort -o "$base/plain.results" "$base/plain.results"
	sort -o "$base/mount.results" "$base/mount.results"
	if diff -u "$base/plain.results" "$base/mount.results" >"$base/differences"; then
		echo "== $name: $(wc -l <"$base/plain.results") results, equal; $(verdicts "$base/plain.results")"
		return 0
	fi
	echo "== $name: DIFFERENT ($(wc -l <"$base/plain.results") results; plain: $(verdicts "$base/plain.results"))"
	grep '^[-+][^-+]' "$base/differences" | head -60
	return 1
}

verdicts() { awk '{n[$NF]++} END {for (v in n) printf "%s %d  ", v, n[v]}' "$1"; }

mounted='' state_dir=''
cleanup_mount() {
	[ -n "$mounted" ] || return 0
	WINKFS_STATE_DIR=$state_dir "$winkfs" umount "$mounted" >/dev/null 2>&1 || umount -l "$mounted" 2>/dev/null || fusermount3 -uz "$mounted" || true
	mounted=''
}
