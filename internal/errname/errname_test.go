package errname

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNames(t *testing.T) {
	for n := unix.Errno(1); n <= last; n++ {
		text, _ := Name(n).MarshalText()
		var back Name
		if len(text) == 0 { // a number that no errno has
			continue
		}
		if err := back.UnmarshalText(text); err != nil || unix.ErrnoName(unix.Errno(back)) != string(text) {
			t.Errorf("%d: %q, back %v, %v", n, text, back, err)
		}
	}
	var n Name
	if err := n.UnmarshalText([]byte("ENONE")); err == nil {
		t.Errorf("ENONE is %v", n)
	}
}

func TestErrnosOfTheHost(t *testing.T) {
	for _, c := range []struct {
		err  error
		want unix.Errno
	}{
		{unix.ENOSPC, unix.ENOSPC},
		{fmt.Errorf("write: %w", unix.EPIPE), unix.EPIPE},
		{unix.EAGAIN, unix.EIO},
		{unix.EINTR, unix.EIO},
		{errors.New("other"), unix.EIO},
	} {
		if got := OfHost(c.err); got != Name(c.want) {
			t.Errorf("%v: %v, not %v", c.err, got, c.want)
		}
	}
}
