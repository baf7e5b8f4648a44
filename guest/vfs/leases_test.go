package vfs

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLeaseTimes: a holder has the time of the settings from the first break on; a
// reader's and a writer's break have a time each.
func TestLeaseTimes(t *testing.T) {
	const second = int64(nsPerSec)
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	f, errno := fs.Open(c, nil, "/tmp/a", unix.O_RDONLY|unix.O_CREAT, 0o600)
	ok(t, errno)
	i := f.Inode()
	expect := func(step string, write bool, deadline int64, conflict bool) {
		t.Helper()
		if d, got := i.LeaseConflict(write); d != deadline || got != conflict {
			t.Errorf("%s: %d %v, want %d %v", step, d, got, deadline, conflict)
		}
	}
	expect("no lease", true, math.MaxInt64, false)
	ok(t, f.SetLease(c, unix.F_WRLCK, 7, 0))
	expect("a lease", false, math.MaxInt64, true)
	broken := i.BreakLeases(false, second)
	if len(broken) != 1 || broken[0] != (BrokenLease{f, 7}) {
		t.Errorf("a reader breaks %+v", broken)
	}
	if len(i.BreakLeases(false, 2*second)) != 0 {
		t.Error("a second reader notifies the holder again")
	}
	expect("a reader", false, 46*second, true)
	if len(i.BreakLeases(true, 11*second)) != 1 {
		t.Error("a writer does not notify the holder")
	}
	expect("a writer", true, 46*second, true)
	if got := f.Lease(46*second - 1); got != unix.F_UNLCK {
		t.Errorf("a writer comes, and the lease is to become %d", got)
	}
	expect("just before", false, 46*second, true)
	f.Lease(46 * second)
	expect("downgraded", false, math.MaxInt64, false)
	expect("downgraded, for a writer", true, 56*second, true)
	f.Owner, f.Signal = FileOwner{Kind: OwnerGroup, ID: 1}, 3
	f.Lease(56 * second)
	expect("removed", true, math.MaxInt64, false)
	if f.Owner != (FileOwner{Kind: OwnerProcess}) || f.Signal != 0 {
		t.Errorf("the end of the lease leaves %+v and signal %d", f.Owner, f.Signal)
	}
	fs.Leases.BreakTime = 0
	ok(t, f.SetLease(c, unix.F_WRLCK, 7, 0))
	i.BreakLeases(true, second)
	expect("without a time", true, math.MaxInt64, true)
	f.Unref()
	expect("closed", true, math.MaxInt64, false)
}

// TestLeaseDelaysTruncation: a file is emptied by the opening that has waited, not before.
func TestLeaseDelaysTruncation(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	f, errno := fs.Open(c, nil, "/tmp/a", unix.O_RDWR|unix.O_CREAT, 0o600)
	ok(t, errno)
	_, errno = f.Write(c, []byte("text"))
	ok(t, errno)
	ok(t, f.SetLease(c, unix.F_WRLCK, 0, 0))
	w, errno := fs.Open(c, nil, "/tmp/a", unix.O_WRONLY|unix.O_TRUNC, 0)
	ok(t, errno)
	if size := f.Inode().Size(); size != 4 {
		t.Errorf("%d bytes are left while the lease is there", size)
	}
	ok(t, f.SetLease(c, unix.F_UNLCK, 0, 0))
	ok(t, w.FinishOpening())
	if size := f.Inode().Size(); size != 0 {
		t.Errorf("%d bytes are left", size)
	}
	if errno := f.SetLease(c, unix.F_WRLCK, 0, 0); errno != unix.EAGAIN {
		t.Errorf("a write lease beside a writer: %v", errno)
	}
	w.Unref()
	ok(t, f.SetLease(c, unix.F_WRLCK, 0, 0))
	r, errno := fs.Open(c, nil, "/tmp/a", unix.O_RDONLY, 0)
	ok(t, errno)
	if errno := f.SetLease(c, unix.F_WRLCK, 0, 0); errno != unix.EAGAIN {
		t.Errorf("a write lease beside a reader: %v", errno)
	}
	r.Unref()
}
