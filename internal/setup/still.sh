#!/bin/sh
# Runs a command with a fixed copy of the dynamic loader's cache. The installation of a
# package replaces the cache, which changes the instructions of every program that
# starts: runs that are compared would differ, and a replay would be refused.
#
#   still.sh COMMAND...
#
# Mounting the copy needs root. Without root the command uses the host's cache.
set -eu
cache=/etc/ld.so.cache
[ "$(id -u)" = 0 ] && [ -e $cache ] && unshare --mount true 2>/dev/null || exec "$@"
copy=$(mktemp)
trap 'rm -f "$copy"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cp $cache "$copy"
chmod 644 "$copy"
unshare --mount sh -c 'mount --bind "$0" /etc/ld.so.cache && exec "$@"' "$copy" "$@"
