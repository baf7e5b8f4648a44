// Package testhost makes tests independent of the host: of signals that the parent of the
// test process ignores, and of processors without hardware breakpoints.
package testhost

import (
	"os"
	"os/signal"
	"syscall"
)

// DefaultSignals sees to it that programs which the process starts begin with each
// signal's default: signals that are ignored here, such as SIGHUP below nohup and SIGINT
// in a shell's background, would be ignored there. TestMain calls it.
func DefaultSignals() {
	for s := syscall.SIGHUP; s <= syscall.SIGSYS; s++ {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
