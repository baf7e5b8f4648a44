// Package testhost makes up for what a test process has from those who started it, and
// must not depend on.
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
