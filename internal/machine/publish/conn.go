package publish

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// hostConn is a connection of the host.
type hostConn struct{ handle int }

func (c *hostConn) Read(b []byte) (int, error) {
	n, err := repeatInterrupted(func() (int, error) { return unix.Read(c.handle, b) })
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(0, n), err
}

// Write writes without the signal that a connection without a reader would raise.
func (c *hostConn) Write(b []byte) (int, error) {
	n, err := repeatInterrupted(func() (int, error) {
		return unix.SendmsgN(c.handle, b, nil, nil, unix.MSG_NOSIGNAL)
	})
	return max(0, n), err
}

func repeatInterrupted(do func() (int, error)) (n int, err error) {
	for {
		if n, err = do(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// CloseWrite ends the half of the guest. It fails only if the connection is lost, which Read
// reports.
func (c *hostConn) CloseWrite() { _ = unix.Shutdown(c.handle, unix.SHUT_WR) }

// Close ends the connection in order.
func (c *hostConn) Close() { _ = unix.Close(c.handle) }

// Reset ends the connection at once.
func (c *hostConn) Reset() {
	_ = unix.SetsockoptLinger(c.handle, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	_ = unix.Close(c.handle)
}
