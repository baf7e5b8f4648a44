package procfs

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// fdDirs makes /proc/PID/fd and /proc/PID/fdinfo.
func fdDirs() []*entry {
	link := privateFile(&entry{follow: followFD, rights: fdRights})
	info := privateFile(&entry{text: fdInfoText})
	return []*entry{
		privateFile(&entry{name: "fd", mode: 0o500, dynamic: &dynamic{entry: link, list: openFiles, about: openFile}}),
		privateFile(&entry{name: "fdinfo", dynamic: &dynamic{entry: info, list: openFiles, about: openFile}}),
	}
}

func openFiles(r *request) []int32 {
	if p := r.process(); p != nil {
		return p.Files()
	}
	return nil
}

func openFile(r *request, n int32) (target, bool) {
	p := r.process()
	if p == nil {
		return target{}, false
	}
	f, _ := p.File(n)
	return target{process: r.target.process, thread: r.thread, fd: n}, f != nil
}

func followFD(r *request) *vfs.Dentry {
	p := r.process()
	if p == nil {
		return nil
	}
	f, _ := p.File(r.fd)
	if f == nil {
		return nil
	}
	return f.Dentry()
}

// fdRights are the permissions of a link in fd: those of the descriptor.
func fdRights(p Process, fd int32) uint32 {
	rights := uint32(0o100)
	f, _ := p.File(fd)
	if f != nil && f.Readable() {
		rights |= 0o400
	}
	if f != nil && f.Writable() {
		rights |= 0o200
	}
	return rights
}

func fdInfoText(r *request) ([]byte, unix.Errno) {
	p := r.process()
	if p == nil {
		return nil, unix.ENOENT
	}
	f, cloexec := p.File(r.fd)
	if f == nil {
		return nil, unix.ENOENT
	}
	flags := f.Flags()
	if cloexec {
		flags |= unix.O_CLOEXEC
	}
	var out textPrinter
	out.printf("pos:\t%d\nflags:\t0%o\nmnt_id:\t%d\nino:\t%d\n", f.Offset, flags, firstMount, f.Inode().Ino())
	return out.Bytes(), 0
}
