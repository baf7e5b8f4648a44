#!/usr/bin/env bash
# Makes Debian packages of the programs in bin, with man pages, completion and notices.
#
#   deb.sh DIR      writes DIR/heddle_VERSION_amd64.deb and DIR/heddle-papers_VERSION_amd64.deb
#
# The second one has the programs of `heddle papers`. The packages depend on the libraries of the Debian that it is made on: one made on Debian 12 is
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
copyright() {
  printf 'heddle is under the GNU General Public License, version 2 or (at your option) any later version:\n'
  printf '/usr/share/common-licenses/GPL-2.\n\n'
  cat NOTICES.md
}
copyright >"$doc/copyright"
printf 'heddle (%s) unstable; urgency=medium\n\n  * See the history of the repository.\n\n -- the heddle authors <heddle@localhost>  %s\n' \
  "$version" "$(date -uRd "@$(git log -1 --format=%ct 2>/dev/null || echo 0)")" | gzip -9n >"$doc/changelog.Debian.gz"

papers=$root/heddle-papers
install -D -s -m 755 bin/heddle-papers "$papers/usr/lib/heddle/heddle-papers"
for program in peregrine tern frost h3 dmt; do
  install -D -s -m 755 "bin/papers/$program" "$papers/usr/lib/heddle/papers/$program"
  mkdir -p "$papers/usr/share/heddle/configs"
  cp -r "configs/$program" "$papers/usr/share/heddle/configs/"
done
cp -r configs/papers "$papers/usr/share/heddle/configs/"
install -d "$papers/usr/share/doc/heddle-papers"
copyright >"$papers/usr/share/doc/heddle-papers/copyright"
cp "$doc/changelog.Debian.gz" "$papers/usr/share/doc/heddle-papers/"

# dpkg-shlibdeps wants a source package around it; libz3 and libunicorn are loaded when they are needed.
mkdir -p "$root/debian"
printf 'Source: heddle\n\nPackage: heddle\nArchitecture: amd64\n' >"$root/debian/control"
libraries() { # FILE...
  local list
  list=$(cd "$root" && dpkg-shlibdeps -O "$@" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
  [ -n "$list" ] || { echo "deb.sh: dpkg-shlibdeps names no libraries" >&2; exit 1; }
  printf %s "$list"
}
mkdir -p "$tree/DEBIAN" "$papers/DEBIAN"
control() { # PACKAGE TREE DEPENDS
  cat <<END
Package: $1
Version: $version
Architecture: amd64
Maintainer: the heddle authors <heddle@localhost>
Section: devel
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$2" | cut -f 1)
Depends: $3, libz3-4
END
}
{
  control heddle "$tree" "$(libraries heddle/usr/bin/heddle heddle/usr/lib/heddle/heddle-plot)"
  cat <<END
Recommends: libunicorn2t64 (>= 2.1.1)
Suggests: heddle-papers, gdb, slurm-client, pbzip2, pigz, zstd
Description: deterministic multithreading of unmodified Linux programs
 heddle runs unmodified multithreaded x86-64 Linux programs on an emulated
 multicore machine. A run is a function of the program, the files that it reads,
 the configuration and a seed. It records, replays and shortens runs, finds
 failing schedules and data races, and sweeps programs over parameters.
 .
 The engine unicorn needs the library of Debian 13's libunicorn2t64, which can be
 installed on Debian 12, too; without it runs use the engine direct.
END
} >"$tree/DEBIAN/control"
{
  control heddle-papers "$papers" "heddle (= $version), gcc, libc6-dev, libbz2-dev, pbzip2, $(libraries heddle-papers/usr/lib/heddle/papers/{peregrine,tern,frost,h3,dmt})"
  cat <<END
Description: the tables and figures of the papers that heddle implements
 heddle papers measures the tables and figures of PEREGRINE, TERN, Frost and H3,
 and a comparison of systems for deterministic multithreading, with programs that
 it builds by gcc, and makes a report of them as an HTML page and a PDF, with the
 papers' own numbers beside heddle's.
END
} >"$papers/DEBIAN/control"
for package in heddle heddle-papers; do
  dpkg-deb --root-owner-group --build "$root/$package" "$out/${package}_${version}_amd64.deb"
done
