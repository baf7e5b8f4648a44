package vfs

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/mm"
)

// device is a character device of /dev.
type device struct {
	fs   *FS
	attr Attr
	name string
}

func (d *device) Attr() Attr { return d.attr }

// devices are the entries of /dev with their numbers.
var devices = []struct {
	name         string
	major, minor uint32
	mode         uint32
}{
	{"full", 1, 7, 0o666},
	{"null", 1, 3, 0o666},
	{"ptmx", 5, 2, 0o666},
	{"random", 1, 8, 0o666},
	{"tty", 5, 0, 0o666},
	{"urandom", 1, 9, 0o666},
	{"zero", 1, 5, 0o666},
}

// devLinks are the links of /dev.
var devLinks = [][2]string{
	{"fd", "/proc/self/fd"},
	{"stderr", "/proc/self/fd/2"},
	{"stdin", "/proc/self/fd/0"},
	{"stdout", "/proc/self/fd/1"},
}

// makeDevices makes /dev and /dev/shm.
func (fs *FS) makeDevices() {
	dev := fs.makeFolder("/dev")
	dev.inode, dev.mounted = fs.newInode(superDev, unix.S_IFDIR|0o755, 0, 0), true
	fs.addMount(MountInfo{Path: "/dev", Super: superDev, Source: "devtmpfs", Options: "rw,nosuid,relatime"})
	for _, d := range devices {
		i := fs.newInode(superDev, unix.S_IFCHR|d.mode, 0, 0)
		i.nlink, i.rdev = 1, unix.Mkdev(d.major, d.minor)
		i.node = &device{fs, Attr{Ino: i.ino, Mode: i.mode, Nlink: 1, TimeNS: i.mtime}, d.name}
		fs.insertName(dev, &Dentry{inode: i}, d.name)
	}
	for _, l := range devLinks {
		i := fs.newInode(superDev, unix.S_IFLNK|0o777, 0, 0)
		i.nlink, i.target = 1, l[1]
		fs.insertName(dev, &Dentry{inode: i}, l[0])
	}
	shm := fs.makeFolder("/dev/shm")
	shm.inode, shm.mounted = fs.newInode(superShm, unix.S_IFDIR|0o1777, 0, 0), true
	fs.addMount(MountInfo{Path: "/dev/shm", Super: superShm, Source: "tmpfs", Options: "rw,nosuid,nodev"})
}

// isTerminal reports whether the kernel opens the device.
func (d *device) isTerminal() bool { return d.name == "tty" || d.name == "ptmx" }

// Open implements OpenNode.
func (d *device) Open(*Ctx, int) (FileImpl, unix.Errno) {
	if d.isTerminal() {
		return nil, 0
	}
	return d, 0
}

func (d *device) Read(_ *Ctx, p []byte, _ int64) (int, unix.Errno) {
	switch d.name {
	case "null":
		return 0, 0
	case "random", "urandom":
		d.fs.Entropy.Read(p)
	default:
		clear(p)
	}
	return len(p), 0
}

func (d *device) Write(_ *Ctx, p []byte, _ int64) (int, unix.Errno) {
	if d.name == "full" {
		return 0, unix.ENOSPC
	}
	return len(p), 0
}

// SeekTo succeeds and stays at 0.
func (*device) SeekTo(int64, int, int64) (int64, unix.Errno) { return 0, 0 }

// zeroSize is the length of /dev/zero for mappings.
const zeroSize = 1 << 47

// Map returns zeros of /dev/zero; a shared mapping is shared through fork alone.
func (d *device) Map(bool) (*mm.Object, unix.Errno) {
	if d.name != "zero" {
		return nil, unix.ENODEV
	}
	return mm.NewObject(d.fs.ram, nil, zeroSize), 0
}
