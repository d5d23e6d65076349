#!/usr/bin/env bash
# Shows the main job on real files: a sandboxed command edits, deletes and moves
# in a workspace; its changes are shown and undone; the source is untouched.
# The argument is the winkfs binary.
set -euo pipefail
winkfs=$(realpath "$1")
dir=$(mktemp -d)
export WINKFS_STATE_DIR=$dir/state
src=$dir/project mnt=$dir/workspace

clean() {
  "$winkfs" umount "$mnt" >/dev/null 2>&1 || fusermount3 -uz "$mnt" 2>/dev/null || umount -l "$mnt" 2>/dev/null || true
  rm -rf "$dir"
}
trap clean EXIT

say() { printf '\n=== %s\n' "$*"; }
show() { printf '$ winkfs %s\n' "$*"; "$winkfs" "$@"; }
fail() { echo "FAILED: $*" >&2; exit 1; }

# fingerprint prints type, mode, owner, mtime, link target and content of all
# that lies below a directory.
fingerprint() {
  (cd "$1" && find . -printf '%p %y %m %U:%G %s %T@ %l\n' | LC_ALL=C sort &&
    find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}

# The project is this repository's own files, or a small tree where there are
# none.
make_project() {
  local top
  top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  mkdir -p "$src" "$mnt"
  if git -C "$top" ls-files -z 2>/dev/null | (cd "$top" && tar -c --null -T - 2>/dev/null) | tar -x -C "$src" 2>/dev/null && [ -e "$src/go.mod" ]; then
    :
  else
    mkdir -p "$src/docs/old" "$src/src"
    for i in $(seq 200); do echo "file $i" >"$src/src/f$i.txt"; echo "old $i" >"$src/docs/old/$i.md"; done
  fi
  printf 'colour = red\nsize = 3\n' >"$src/settings.conf"
  mkdir -p "$src/attic/deep" "$src/drafts"
  echo "precious" >"$src/attic/deep/notes.txt"
  echo "a draft" >"$src/drafts/one.txt"
}

make_project
before=$(fingerprint "$src")
say "A workspace over $(find "$src" -type f | wc -l) files"
show mount --name demo "$src" "$mnt"
diff -r --no-dereference "$src" "$mnt" || fail "the workspace differs from the source before any change"

say "A command in the sandbox edits, deletes and moves"
show exec -w demo -- sh -c 'sed -i s/red/blue/ settings.conf && rm -rf attic && mv drafts texts'
grep -q blue "$mnt/settings.conf" || fail "the edit does not show"
[ ! -e "$mnt/attic" ] || fail "the deleted directory still shows"
[ -e "$mnt/texts/one.txt" ] && [ ! -e "$mnt/drafts" ] || fail "the move does not show"

say "A second command, to be kept"
show exec -w demo -- sh -c 'echo "size = 4" >> kept.conf'

say "What changed"
show status -w demo
show diff -w demo --stat
show diff -w demo | cat

say "Undo of just the first command"
show undo -w demo exec:1
show diff -w demo --name-status
[ -e "$mnt/kept.conf" ] || fail "the undo took the second command's file"
rm "$mnt/kept.conf"
diff -r --no-dereference "$src" "$mnt" || fail "after the undo the workspace differs from the source"

say "The source is as it was"
show umount demo
[ "$before" = "$(fingerprint "$src")" ] || fail "the source has changed"
echo "$(wc -l <<<"$before") lines of content, mode and time compared: identical"
