#!/usr/bin/env bash
# Makes sure that the programs and rights that the tests need are there. As root
# on a system with apt-get it installs them, opens /dev/fuse to everybody and
# makes the user winkfs-test; elsewhere it says what is missing.
set -euo pipefail

# program:Debian package
needed=(
  fusermount3:fuse3
  fuse-overlayfs:fuse-overlayfs
  git:git
  rg:ripgrep
  getfattr:attr
  setfacl:acl
  strace:strace
  gcc:gcc
  ps:procps
  unshare:util-linux
  diff:diffutils
  tar:tar
  useradd:passwd
  losetup:mount
  mkfs.ext4:e2fsprogs
  mkfs.xfs:xfsprogs
)

PATH=$PATH:/usr/sbin:/sbin
programs=() packages=()
missing() {
  programs=() packages=()
  local n
  for n in "${needed[@]}"; do
    command -v "${n%%:*}" >/dev/null || { programs+=("${n%%:*}"); packages+=("${n#*:}"); }
  done
  [ ${#programs[@]} -gt 0 ]
}

root=$([ "$(id -u)" = 0 ] && echo yes || echo no)
if missing && [ "$root" = yes ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${packages[@]}" libc6-dev >/dev/null
fi
if missing; then
  echo "The tests need programs that are missing: ${programs[*]}" >&2
  echo "On Debian: apt-get install ${packages[*]}" >&2
  exit 7
fi

if [ ! -e /dev/fuse ] && [ "$root" = yes ]; then
  modprobe fuse 2>/dev/null || mknod /dev/fuse c 10 229 || true
fi
if [ "$root" = yes ]; then
  [ -e /dev/fuse ] && chmod 666 /dev/fuse
  id winkfs-test >/dev/null 2>&1 || useradd --system --shell /bin/sh --no-create-home winkfs-test
fi
if [ ! -r /dev/fuse ] || [ ! -w /dev/fuse ]; then
  echo "/dev/fuse can't be opened: as root, modprobe fuse && chmod 666 /dev/fuse" >&2
  exit 7
fi
