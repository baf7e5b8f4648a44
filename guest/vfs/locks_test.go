package vfs

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// TestLocksAgainstHost makes random locks of open file descriptions on the host
// and in the guest. The rules for POSIX locks are the same, with another owner.
func TestLocksAgainstHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host, err := os.CreateTemp("", "locks")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = host.Close(); _ = os.Remove(host.Name()) }()
		if err := host.Truncate(50); err != nil {
			t.Fatal(err)
		}
		fs := &FS{linked: map[hostID]*Inode{}, maxInodes: 1}
		d := anonDentry(fs.newInode(superShm, unix.S_IFREG|0o600, 0, 0), "file")
		d.inode.lower = &lower{attr: lowerAttr{size: 50}}
		var fds []int
		var files []*File
		for _, flags := range []int{unix.O_RDWR, unix.O_RDWR, unix.O_RDONLY, unix.O_WRONLY} {
			fd, err := unix.Open(host.Name(), flags, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Close(fd) }()
			fds = append(fds, fd)
			files = append(files, fs.newFile(d, flags, &regular{d.inode}))
		}
		genLock := func(t *rapid.T) unix.Flock_t {
			return unix.Flock_t{
				Type:   rapid.SampledFrom([]int16{unix.F_RDLCK, unix.F_WRLCK, unix.F_UNLCK, 7}).Draw(t, "type"),
				Whence: rapid.SampledFrom([]int16{unix.SEEK_SET, unix.SEEK_CUR, unix.SEEK_END, 3}).Draw(t, "whence"),
				Start:  rapid.Int64Range(-5, 60).Draw(t, "start"), Len: rapid.Int64Range(-8, 30).Draw(t, "len"),
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i, lk := rapid.IntRange(0, 3).Draw(t, "file"), genLock(t)
				native := lk
				want := errnoOf(unix.FcntlFlock(uintptr(fds[i]), unix.F_OFD_SETLK, &native))
				if got := files[i].SetLock(LockOwner{File: files[i]}, lk, 0); got != want {
					t.Fatalf("file %d, %+v: %v, the host says %v", i, lk, got, want)
				}
			},
			"get": func(t *rapid.T) {
				i, lk := rapid.IntRange(0, 3).Draw(t, "file"), genLock(t)
				if lk.Type == unix.F_UNLCK {
					t.Skip() // asks for the description's own locks since Linux 6.6
				}
				native := lk
				want := errnoOf(unix.FcntlFlock(uintptr(fds[i]), unix.F_OFD_GETLK, &native))
				got, errno := files[i].GetLock(LockOwner{File: files[i]}, lk)
				if errno != want || errno == 0 && got != native {
					t.Fatalf("file %d, %+v: %+v %v, the host says %+v %v", i, lk, got, errno, native, want)
				}
			},
			"seek": func(t *rapid.T) {
				i, at := rapid.IntRange(0, 3).Draw(t, "file"), rapid.Int64Range(0, 20).Draw(t, "at")
				if _, err := unix.Seek(fds[i], at, unix.SEEK_SET); err != nil {
					t.Fatal(err)
				}
				if _, errno := files[i].Lseek(at, unix.SEEK_SET); errno != 0 {
					t.Fatal(errno)
				}
			},
			"flock": func(t *rapid.T) {
				i := rapid.IntRange(0, 3).Draw(t, "file")
				op := rapid.SampledFrom([]int{unix.LOCK_SH, unix.LOCK_EX, unix.LOCK_UN, 9}).Draw(t, "op") | unix.LOCK_NB
				want := errnoOf(unix.Flock(fds[i], op))
				if got := files[i].Flock(op); got != want {
					t.Fatalf("flock of file %d, %d: %v, the host says %v", i, op, got, want)
				}
			},
		})
	})
}

// TestDeadlocks follows fcntl(2): F_SETLKW fails with EDEADLK when waiting would
// close a cycle of processes.
func TestDeadlocks(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	open := func(name string) *File {
		f, errno := fs.Open(c, nil, "/tmp/"+name, unix.O_RDWR|unix.O_CREAT, 0o600)
		ok(t, errno)
		return f
	}
	a, b := open("a"), open("b")
	lock := func(f *File, process int32, start int64, kind int16, waiter int32) unix.Errno {
		return f.SetLock(LockOwner{Process: process}, unix.Flock_t{Type: kind, Start: start, Len: 1}, waiter)
	}
	want := func(got, want unix.Errno, what string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	want(lock(a, 1, 0, unix.F_WRLCK, 11), 0, "1 locks a0")
	want(lock(a, 2, 1, unix.F_WRLCK, 21), 0, "2 locks a1")
	want(lock(b, 3, 0, unix.F_WRLCK, 31), 0, "3 locks b0")
	want(lock(a, 2, 0, unix.F_RDLCK, 21), unix.EAGAIN, "2 waits for 1")
	want(lock(a, 3, 1, unix.F_WRLCK, 31), unix.EAGAIN, "3 waits for 2")
	want(lock(b, 1, 0, unix.F_WRLCK, 0), unix.EAGAIN, "1 tries b0 without waiting")
	want(lock(b, 1, 0, unix.F_WRLCK, 11), unix.EDEADLK, "1 would wait for 3, 2 and itself")
	want(lock(b, 1, 0, unix.F_UNLCK, 11), 0, "1 unlocks what it has not")
	fs.CancelLock(31)
	want(lock(b, 1, 0, unix.F_WRLCK, 11), unix.EAGAIN, "3 waits no more")
	b.UnlockAll(LockOwner{Process: 3})
	want(lock(b, 1, 0, unix.F_WRLCK, 11), 0, "3 closed b")
	if len(fs.waits) != 1 {
		t.Errorf("%d tasks wait, want only 21", len(fs.waits))
	}
	ofd := open("a")
	if errno := ofd.SetLock(LockOwner{File: ofd}, unix.Flock_t{Type: unix.F_WRLCK, Start: 9}, 41); errno != 0 {
		t.Error(errno)
	}
	lk, errno := a.GetLock(LockOwner{Process: 1}, unix.Flock_t{Type: unix.F_RDLCK, Start: 9})
	if errno != 0 || lk.Pid != -1 || lk.Type != unix.F_WRLCK {
		t.Errorf("%+v %v", lk, errno)
	}
	ofd.Unref()
	lk, errno = a.GetLock(LockOwner{Process: 1}, unix.Flock_t{Type: unix.F_RDLCK, Start: 9})
	if errno != 0 || lk.Type != unix.F_UNLCK {
		t.Errorf("a closed description still has %+v %v", lk, errno)
	}
}

type counter struct{ wakes int }

func (c *counter) Wake(uint32) { c.wakes++ }

func TestUnlockingWakes(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	f, errno := fs.Open(c, nil, "/tmp/a", unix.O_RDWR|unix.O_CREAT, 0o600)
	ok(t, errno)
	w := &counter{}
	f.Inode().LockWaiters().Add(w)
	for i, step := range []func(){
		func() { ok(t, f.Flock(unix.LOCK_EX)); ok(t, f.Flock(unix.LOCK_UN)) },
		func() { f.UnlockAll(LockOwner{Process: 1}) },
		func() { ok(t, f.SetLock(LockOwner{Process: 1}, unix.Flock_t{Type: unix.F_WRLCK}, 0)) },
		func() { f.UnlockAll(LockOwner{Process: 1}) },
	} {
		before := w.wakes
		step()
		if woken := w.wakes > before; woken != (i != 1) {
			t.Errorf("step %d: woken %v", i, woken)
		}
	}
}

func TestLocksAreBounded(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	f, errno := fs.Open(c, nil, "/tmp/a", unix.O_RDWR|unix.O_CREAT, 0o600)
	ok(t, errno)
	fs.locks = maxLocks
	if errno := f.SetLock(LockOwner{Process: 1}, unix.Flock_t{Type: unix.F_WRLCK}, 0); errno != unix.ENOLCK {
		t.Errorf("lock %d: %v", maxLocks, errno)
	}
	fs.locks = 0
	ok(t, f.SetLock(LockOwner{Process: 1}, unix.Flock_t{Type: unix.F_WRLCK}, 0))
	for i := range int64(100) {
		ok(t, f.SetLock(LockOwner{Process: 1}, unix.Flock_t{Type: unix.F_UNLCK, Start: 2 * i, Len: 1}, 0))
	}
	if fs.locks != 100 {
		t.Errorf("%d locks, want 100", fs.locks)
	}
}
