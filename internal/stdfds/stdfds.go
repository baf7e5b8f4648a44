// Package stdfds finds out which of the first three descriptors this process was
// started without. Go's runtime opens /dev/null in the place of each before any Go code
// runs, so that C has to look first. Output is a standard output that may be closed.
package stdfds

// #cgo CFLAGS: -std=c11 -Wall -Wextra -Werror
// int heddle_closed_stdfds(void);
import "C"

// Closed are the descriptors that were closed when the process was started.
func Closed() (closed [3]bool) {
	bits := int(C.heddle_closed_stdfds())
	for fd := range closed {
		closed[fd] = bits>>fd&1 != 0
	}
	return closed
}
