// Package setup holds the scripts by which make installs the packages that heddle needs on Debian:
// packages.txt lists the packages by purpose, packages.sh installs a purpose's, and
// go.sh finds a Go that is new enough. The package's test compares the list with the headers and
// libraries of the build, and with the programs and libraries of the tests.
package setup
