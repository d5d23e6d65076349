#!/usr/bin/env bash
# All that must pass: formatting and analysis, unit tests under the race
# detector, then the tests of the built binary, as root and as an ordinary user.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash tests/setup.sh
export WINKFS_REQUIRE=${WINKFS_REQUIRE:-binary,fuse,userns,git}
if [ "$(id -u)" = 0 ]; then
  export WINKFS_TEST_USER=${WINKFS_TEST_USER:-winkfs-test}
  # The loss of power needs a disk of its own to lose it.
  if [ -e /dev/loop-control ]; then
    WINKFS_REQUIRE=$WINKFS_REQUIRE,loop,mkfs.ext4,mkfs.xfs
  else
    echo "no loop devices: what the loss of power leaves is not tested" >&2
  fi
fi

make --no-print-directory lint build race
export WINKFS_BIN=$PWD/bin/winkfs
bash tests/run_each.sh "$WINKFS_BIN"
go test -count=1 -timeout 20m ./tests/...
