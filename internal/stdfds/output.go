package stdfds

import (
	"io"
	"syscall"
)

// Output is where a command itself prints. It remembers the first failure in Err, so that printing need
// not check.
type Output struct {
	To     io.Writer
	Closed bool // the command was started without it: the Go runtime has put /dev/null
	Err    error
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	if o.Err != nil {
		return 0, o.Err
	}
	if o.Closed {
		o.Err = syscall.EBADF
		return 0, o.Err
	}
	var n int
	n, o.Err = o.To.Write(p)
	return n, o.Err
}
