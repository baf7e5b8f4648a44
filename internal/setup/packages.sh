#!/usr/bin/env bash
# Installs the Debian packages of a purpose in packages.txt.
#
#   packages.sh build   the packages for `make build`
#   packages.sh demo    build, and the programs that configs/demo.yaml runs
#   packages.sh test    demo, and every program and library that the tests use
#   packages.sh servers test, and the servers of docs/servers.md, which are not started
#   packages.sh slurm   test, and the daemons of Slurm that make slurm starts for itself
#   packages.sh deb     build, and the tools that make packages
#   packages.sh strangers  test, and the packages that configs/strangers/programs.yaml names
#
# Installed packages are not changed, and the script does nothing when no
# package is missing, so it needs root on the first call only.
set -euo pipefail
cd "$(dirname "$0")"

case "${1:-}" in
  build | demo | test | servers | slurm | deb | strangers) ;;
  *) echo "usage: packages.sh build|demo|test|servers|slurm|deb|strangers" >&2; exit 2 ;;
esac
purpose=$1
[ "$purpose" != strangers ] || purpose=test
want=()
seen=
while read -r use package _; do
  case "$use" in '' | '#'*) continue ;; servers | slurm | deb) [ "$use" = "$purpose" ] || continue ;; esac
  case "$purpose $use" in "deb demo" | "deb test") continue ;; esac
  [ -z "$seen" ] || [ "$use" = "$purpose" ] || break
  [ "$use" != "$purpose" ] || seen=1
  want+=("$package")
done <packages.txt
if [ "$1" = strangers ]; then
  # The list is there once: packages: NAME, or packages: [NAME, NAME].
  programs=../../configs/strangers/programs.yaml
  mapfile -t -O ${#want[@]} want < <(grep -o 'packages: *\(\[[^]]*\]\|[a-z0-9.+-]*\)' $programs | sed 's/^packages: *//' | tr -d '[] ' | tr ',' '\n' | sort -u)
fi

# Any Go that is new enough for go.mod will do, whether or not it is a package.
./go.sh >/dev/null || want+=(golang-1.24-go)

# The version of an installed package; empty when it is not installed.
installed() { dpkg-query -W -f '${db:Status-Abbrev} ${Version}' "$1" 2>/dev/null | sed -n 's/^ii *//p'; }

# Unicorn below 2.1.1 sends every store down a slow path (docs/engine.md).
present() {
  local version
  version=$(installed "$1")
  [ -n "$version" ] || return 1
  [ "$1" != libunicorn-dev ] || dpkg --compare-versions "$version" ge 2.1.1
}

missing=()
for package in "${want[@]}"; do present "$package" || missing+=("$package"); done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "heddle: these Debian packages are missing and there is no apt-get to install them with: ${missing[*]}" >&2
  exit 1
fi
root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "heddle: run as root, or install these packages: ${missing[*]}" >&2; exit 1; }
  root=(sudo)
fi

# Debian 12 has Unicorn 2.0.1 and Go 1.19. The packages of trixie (Debian 13)
# need only glibc 2.34, so trixie is added as a copy of the system's own source,
# pinned so that no other packages are installed from it.
add_trixie() {
  local dir=/etc/apt/sources.list.d uri key
  local deb822=$dir/debian.sources
  if [ -f $deb822 ]; then
    uri=$(sed -n 's/^URIs: *//p' $deb822 | head -n 1)
    key=$(sed -n 's/^Signed-By: *//p' $deb822 | head -n 1)
  else
    uri=$(sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) bookworm main.*/\2/p' /etc/apt/sources.list | head -n 1)
    key=/usr/share/keyrings/debian-archive-keyring.gpg
  fi
  [ -n "$uri" ] || { echo "heddle: no Debian source found to copy; install libunicorn-dev 2.1.1 or newer by hand" >&2; exit 1; }
  printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: %s\n' "$uri" "$key" |
    "${root[@]}" tee $dir/heddle-trixie.sources >/dev/null
  printf 'Package: *\nPin: release n=trixie\nPin-Priority: -1\n\nPackage: libunicorn-dev libunicorn2t64 golang-1.24-go golang-1.24-src\nPin: release n=trixie\nPin-Priority: 990\n' |
    "${root[@]}" tee /etc/apt/preferences.d/heddle-trixie >/dev/null
}

needs_trixie() {
  [[ " ${missing[*]} " =~ " libunicorn-dev "|" golang-1.24-go " ]] && grep -q '^VERSION_CODENAME=bookworm' /etc/os-release
}
if needs_trixie; then add_trixie; fi

# Debian starts a server when its package is installed, unless this program forbids it.
policy=/usr/sbin/policy-rc.d
if [[ "$1" =~ ^(servers|slurm)$ ]] && ! [ -e $policy ]; then
  trap '"${root[@]}" rm -f $policy' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee $policy >/dev/null
  "${root[@]}" chmod 755 $policy
fi

echo "installing: ${missing[*]}"
"${root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
