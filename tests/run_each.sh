#!/usr/bin/env bash
# Runs what `make run` shows, as the caller and, for root, as the ordinary user
# that WINKFS_TEST_USER names.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(realpath "$1")

bash "$here/run.sh" "$bin"
if [ "$(id -u)" = 0 ] && [ -n "${WINKFS_TEST_USER:-}" ]; then
  # The repository and its binary may lie where the user may not look.
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  cp "$bin" "$dir/winkfs"
  cp "$here/run.sh" "$dir"
  install -d -o "$WINKFS_TEST_USER" "$dir/home"
  chmod 755 "$dir"
  cd "$dir"
  setpriv --reuid "$WINKFS_TEST_USER" --regid "$(id -g "$WINKFS_TEST_USER")" --clear-groups \
    env HOME="$dir/home" TMPDIR="$dir/home" bash "$dir/run.sh" "$dir/winkfs"
fi
