#!/bin/sh
# Prints the Go command to build heddle with: the first of `go` in PATH, the
# usual place of an upstream Go and Debian's versioned package that is new
# enough for go.mod. Without one it exits with status 1 and prints nothing.
cd "$(dirname "$0")/../.." || exit 1
need=$(sed -n 's/^go 1\.\([0-9]*\).*/\1/p' go.mod)
for go in go /usr/local/go/bin/go /usr/lib/go-1.24/bin/go; do
  have=$("$go" version 2>/dev/null | sed -n 's/^go version go1\.\([0-9]*\).*/\1/p')
  if [ "${have:-0}" -ge "$need" ]; then
    echo "$go"
    exit 0
  fi
done
exit 1
