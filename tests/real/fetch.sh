#!/bin/bash
# fetch.sh PACKAGE DIR: unpacks Debian's source of a package below DIR and prints
# where. It uses a package index of its own, so the machine's sources stay as they
# are. Needs root's or anybody's network, dpkg-dev, and about 300 MB in DIR.
set -euo pipefail

package=$1
dir=$(realpath -m "$2")
release=${REAL_RELEASE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
mirror=${REAL_MIRROR:-http://deb.debian.org/debian}
keyring=${REAL_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}

apt="$dir/apt"
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$dir/src"
cat > "$apt/sources.list" <<LIST
deb-src [signed-by=$keyring] $mirror $release main
LIST
cat > "$apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
CONF

found() { find "$dir/src" -mindepth 1 -maxdepth 1 -type d -name "$package-[0-9]*" -print -quit; }

if [ -z "$(found)" ]; then
	export APT_CONFIG="$apt/apt.conf"
	[ -n "$(find "$apt/lists" -name '*Sources*' -print -quit)" ] || apt-get -qq update >&2
	(cd "$dir/src" && apt-get -qq source "$package" >&2)
fi
found
