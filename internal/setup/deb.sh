#!/usr/bin/env bash
# Makes a Debian package of the programs in bin, with man pages, completion and notices.
#
#   deb.sh DIR      writes DIR/heddle_VERSION_amd64.deb
#
# The package depends on the libraries of the Debian that it is made on: one made on Debian 12 is
# for Debian 12. No root is needed.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:?usage: deb.sh DIR}
mkdir -p "$out"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# The date of the commit orders versions.
version=0.0~$(git log -1 --format=%cd --date=format:%Y%m%d%H%M 2>/dev/null || echo 0)+$(git rev-parse --short=8 HEAD 2>/dev/null || echo unknown)
tree=$root/heddle
install -D -s -m 755 bin/heddle "$tree/usr/bin/heddle"
install -D -s -m 755 bin/heddle-plot "$tree/usr/lib/heddle/heddle-plot"

doc=$tree/usr/share/doc/heddle
install -d "$doc" "$tree/usr/share/man/man1"
bin/heddle man "$root/man" >/dev/null
for page in "$root"/man/man1/*.1 "$root"/man/*.1; do
  [ ! -e "$page" ] || gzip -9n <"$page" >"$tree/usr/share/man/man1/$(basename "$page").gz"
done
completion() { mkdir -p "$(dirname "$tree/$2")" && bin/heddle completion "$1" >"$tree/$2"; }
completion bash usr/share/bash-completion/completions/heddle
completion zsh usr/share/zsh/vendor-completions/_heddle
completion fish usr/share/fish/vendor_completions.d/heddle.fish

cp -r README.md docs "$doc/"
{
  printf 'heddle is under the GNU General Public License, version 2 or (at your option) any later version:\n'
  printf '/usr/share/common-licenses/GPL-2.\n\n'
  cat NOTICES.md
} >"$doc/copyright"
printf 'heddle (%s) unstable; urgency=medium\n\n  * See the history of the repository.\n\n -- the heddle authors <heddle@localhost>  %s\n' \
  "$version" "$(date -uRd "@$(git log -1 --format=%ct 2>/dev/null || echo 0)")" | gzip -9n >"$doc/changelog.Debian.gz"

# dpkg-shlibdeps wants a source package around it; libz3 and libunicorn are loaded when they are needed.
mkdir -p "$root/debian"
printf 'Source: heddle\n\nPackage: heddle\nArchitecture: amd64\n' >"$root/debian/control"
libraries=$(cd "$root" && dpkg-shlibdeps -O heddle/usr/bin/heddle heddle/usr/lib/heddle/heddle-plot 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$libraries" ] || { echo "deb.sh: dpkg-shlibdeps names no libraries" >&2; exit 1; }
mkdir -p "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<END
Package: heddle
Version: $version
Architecture: amd64
Maintainer: the heddle authors <heddle@localhost>
Section: devel
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f 1)
Depends: $libraries, libz3-4
Recommends: libunicorn2t64 (>= 2.1.1)
Suggests: gdb, slurm-client, pbzip2, pigz, zstd
Description: deterministic multithreading of unmodified Linux programs
 heddle runs unmodified multithreaded x86-64 Linux programs on an emulated
 multicore machine. A run is a function of the program, the files that it reads,
 the configuration and a seed. It records, replays and shortens runs, finds
 failing schedules and data races, and sweeps programs over parameters.
 .
 The engine unicorn needs the library of Debian 13's libunicorn2t64, which can be
 installed on Debian 12, too; without it runs use the engine direct.
END
dpkg-deb --root-owner-group --build "$tree" "$out/heddle_${version}_amd64.deb"
