#!/usr/bin/env bash
# Runs stress-ng's stressors of files and directories over a workspace and over
# a plain directory beside it, and prints how each ended. A stressor that fails
# in the workspace only is an error; so is a data race when the daemon was built
# with the race detector. By hand: it takes about 8 minutes.
#
# With stress-ng 0.15.06 on Linux 6.18 every stressor ends over the workspace as
# over ext4, but fiemap, which FUSE has not (the kernel answers EOPNOTSUPP
# itself), and the daemon shows no race.
#
#   tests/real/stress-ng.sh [STRESSOR...]
#
#   DIR     where both directories are made (default: a temporary directory)
#   SECS    seconds for each stressor and directory (default 3)
#   PROCS   processes of each stressor (default 4)
#   RACE=1  builds the daemon with the race detector
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
secs=${SECS:-3} procs=${PROCS:-4}

command -v stress-ng >/dev/null || { echo "stress-ng is missing. On Debian: apt-get install stress-ng" >&2; exit 1; }

# Stressors that mount, or that look at no file below their directory, are left
# out: bind-mount, binderfs, dup, eventfd, fanotify, io, procfs.
all=(access acl aio chattr chdir chmod chown copy-file dentry dir dirdeep dirmany dnotify fallocate fcntl fiemap file-ioctl
  filename flock fpunch fsize fstat getdent handle hdd inode-flags inotify io-uring iomix lease link locka lockf lockofd
  metamix mknod msync open readahead rename revio seek sendfile splice symlink sync-file touch utime verity xattr)

top=$(mktemp -d "${DIR:-${TMPDIR:-/tmp}}/winkfs-stress-XXXXXX")
export WINKFS_STATE_DIR=$top/state GORACE="log_path=$top/race"
winkfs=${WINKFS_BIN:-$here/../../bin/winkfs}
if [ -n "${RACE:-}" ]; then
  (cd "$here/../.." && CGO_ENABLED=1 go build -race -o "$top/winkfs" ./cmd/winkfs)
  winkfs=$top/winkfs
fi
mkdir "$top/lower" "$top/plain" "$top/mount"

clean() {
  "$winkfs" umount "$top/mount" >/dev/null 2>&1 || umount -l "$top/mount" 2>/dev/null || fusermount3 -uz "$top/mount" 2>/dev/null || true
  rm -rf "$top"
}
trap clean EXIT
"$winkfs" mount --name stress "$top/lower" "$top/mount" >/dev/null

# ended runs one stressor in a directory and prints how it ended.
ended() {
  local code=0
  timeout -k 10 $((secs * 10 + 60)) stress-ng --temp-path "$2" --"$1" "$procs" --timeout "$secs" --verify --oomable >"$top/out-$3" 2>&1 || code=$?
  case $code in
  0) if grep -q 'skipping stressor\|not implemented' "$top/out-$3"; then echo skipped; else echo ok; fi ;;
  1) echo "unknown" ;; # to this version of stress-ng
  3) echo "no-resource" ;;
  4) echo "unsupported" ;;
  124 | 137) echo "hangs" ;;
  *) echo "fails" ;;
  esac
}

bad=0
stressors=("$@")
[ ${#stressors[@]} -gt 0 ] || stressors=("${all[@]}")
printf '%-12s %-12s %s\n' stressor "$(stat -f -c %T "$top/plain")" workspace
for s in "${stressors[@]}"; do
  plain=$(ended "$s" "$top/plain" plain)
  inside=$(ended "$s" "$top/mount" mount)
  note=
  if [ "$inside" != "$plain" ] && [[ $inside = fails || $inside = hangs ]]; then
    bad=1 note="<-- "$(grep -m3 -E 'fail|error' "$top/out-mount" | sed 's/stress-ng: //' | tr '\n' ';' || true)
  fi
  printf '%-12s %-12s %-12s %s\n' "$s" "$plain" "$inside" "$note"
  "$winkfs" status -w stress >/dev/null || { echo "the daemon is gone after $s" >&2; exit 1; }
done
"$winkfs" verify -w stress >/dev/null || { echo "the journal is damaged" >&2; bad=1; }
"$winkfs" umount "$top/mount" >/dev/null
[ -z "$(ls -A "$top/lower")" ] || { echo "the lower has changed" >&2; bad=1; }
if ls "$top"/race.* >/dev/null 2>&1; then
  cat "$top"/race.* >&2
  bad=1
fi
exit $bad
