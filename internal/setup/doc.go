// Package setup holds the scripts by which make installs what heddle needs on Debian:
// packages.txt lists the packages by purpose, packages.sh installs a purpose's, and
// go.sh finds a Go that is new enough. The package's test holds the list against what
// the build includes and links, and what the tests compile, link and execute.
package setup
