#!/usr/bin/env bash
# Two forks of one live workspace run a package install by the real npm, offline
# from local tarballs, in the sandbox and at the same time. One is merged, the
# other removed; ignored files come along. Needs npm. The argument is the winkfs
# binary.
set -euo pipefail
winkfs=$(realpath "$1")
command -v npm >/dev/null || { echo "npm is missing: apt-get install npm" >&2; exit 7; }
dir=$(mktemp -d)
export WINKFS_STATE_DIR=$dir/state

clean() {
  for m in "$dir"/mnt*; do "$winkfs" umount "$m" >/dev/null 2>&1 || umount -l "$m" 2>/dev/null || true; done
  rm -rf "$dir"
}
trap clean EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# A project and, below vendor/, packages as tarballs: 40 small ones, and one for
# each fork that depends on half of them.
src=$dir/project
mkdir -p "$src/vendor" "$dir/pack"
pack() { # name, package.json's dependencies
  local p=$dir/pack/$1
  mkdir -p "$p/lib" "$p/bin"
  echo "{\"name\": \"$1\", \"version\": \"1.0.0\", \"bin\": {\"$1\": \"bin/run.js\"}, \"dependencies\": {$2}}" >"$p/package.json"
  for i in $(seq 10); do echo "module.exports = $i // $1" >"$p/lib/$i.js"; done
  printf '#!/usr/bin/env node\nconsole.log("%s")\n' "$1" >"$p/bin/run.js"
  tar -C "$dir/pack" --transform "s,^$1,package," -czf "$src/vendor/$1-1.0.0.tgz" "$1"
}
for i in $(seq 40); do pack "small$i" ""; done
pack alpha ""
pack beta ""
echo '{"name": "project", "version": "1.0.0", "private": true}' >"$src/package.json"
echo node_modules >"$src/.gitignore"
git -C "$src" init -q && git -C "$src" add . && git -C "$src" -c user.name=t -c user.email=t@t commit -qm start
before=$(cd "$src" && find . -type f -print0 | sort -z | xargs -0 sha256sum)

mkdir "$dir/mnt" "$dir/mnt1" "$dir/mnt2"
"$winkfs" mount --name project "$src" "$dir/mnt"
install() { # fork, package, first and last small one
  local files=(./vendor/"$2"-1.0.0.tgz) i
  for i in $(seq "$3" "$4"); do files+=("./vendor/small$i-1.0.0.tgz"); done
  "$winkfs" exec -w "$1" --timeout 300 -- npm install --offline --no-audit --no-fund --cache /tmp/npm "${files[@]}"
}
for n in 1 2; do
  start=$(date +%s%N)
  "$winkfs" clone -w project --with-changes "fork$n"
  echo "fork $n took $((($(date +%s%N) - start) / 1000000)) ms"
  "$winkfs" mount -w "fork$n" "$dir/mnt$n"
done
install fork1 alpha 1 20 & one=$!
install fork2 beta 21 40 & two=$!
wait $one || fail "npm in fork 1"
wait $two || fail "npm in fork 2"
[ -e "$dir/mnt1/node_modules/alpha/lib/3.js" ] && [ ! -e "$dir/mnt1/node_modules/beta" ] || fail "fork 1 is not by itself"
[ -e "$dir/mnt2/node_modules/beta/lib/3.js" ] && [ ! -e "$dir/mnt2/node_modules/alpha" ] || fail "fork 2 is not by itself"
[ ! -e "$dir/mnt/node_modules" ] || fail "the parent sees an install"

start=$(date +%s%N)
"$winkfs" merge fork1 >/dev/null
echo "the merge took $((($(date +%s%N) - start) / 1000000)) ms"
"$winkfs" umount fork2
"$winkfs" rm --yes fork2
diff -r --no-dereference "$dir/mnt" "$dir/mnt1" || fail "the parent differs from the merged fork"
"$winkfs" exec -w project -- node_modules/.bin/alpha | grep -qx alpha || fail "the installed command does not run"
"$winkfs" exec -w project -- npm ls --offline --cache /tmp/npm >/dev/null || fail "npm doesn't like what was merged"
[ -z "$(git -C "$dir/mnt" status --porcelain -- node_modules)" ] || fail "node_modules is not ignored"
for w in project fork1; do
  "$winkfs" umount $w
  "$winkfs" verify -w $w
done
[ "$before" = "$(cd "$src" && find . -type f -print0 | sort -z | xargs -0 sha256sum)" ] || fail "the source has changed"
echo "two installs, one merged, one removed: the source is untouched"
