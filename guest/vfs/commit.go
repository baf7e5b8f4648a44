package vfs

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Commit writes the changes below writable mounts to the host: what was made,
// changed, renamed and removed, modes, and owners as far as the host allows.
// Each file appears or changes at once, except a file that is a mount by itself. Times are the host's, except those that
// the guest set to a value of its own if Config.HostTimes was given. The order
// is that of the paths, mount by mount. Commit is called once, after the run; it
// calls Inputs before it changes anything. The error names the first path that
// could not be written; what comes before it is done.
func (fs *FS) Commit() error {
	if _, err := fs.Inputs(); err != nil {
		return err
	}
	for _, top := range fs.writable {
		if err := fs.commitMount(top); err != nil {
			return errCommit.Wrap(err, top.Path(), top.inode.lower.hostPath())
		}
	}
	return nil
}

func (fs *FS) commitMount(top *Dentry) error {
	changes, errno := fs.diffLinks(top, mountBelow(top))
	if errno != 0 {
		return errno
	}
	if len(changes) == 0 {
		return nil
	}
	mount := top.inode.lower
	for i := range changes {
		changes[i].path = strings.TrimPrefix(changes[i].at.path()[len(top.pathTo(nil)):], "/")
	}
	dir := mount.hostPath()
	if !mount.isDir() {
		return commitFile(top.inode, dir)
	}
	w, err := fs.newWriter(dir, top)
	if err != nil {
		return err
	}
	w.mount = mount
	return w.run(changes)
}

// commitFile writes a mount that is a single file. Its folder does not belong to
// the mount, so nothing can be staged there: the file is written in place.
func commitFile(i *Inode, name string) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if i.dataChanged {
		if err := i.copyTo(fd); err != nil {
			return err
		}
	}
	return unix.Fchmod(fd, modeOf(i))
}

// removedList is the file of an export folder that lists removed names.
const removedList = ".heddle-removed"

// Export writes the changes outside of writable mounts to a folder of the host,
// which is made if need be: each file that the guest made or changed under its
// guest path, with its mode. Removed names are listed in the file
// .heddle-removed, one in a line.
func (fs *FS) Export(dir string) error {
	changes, errno := fs.overlayChanges()
	if errno != 0 {
		return errExport.Wrap(errno, dir)
	}
	err := os.MkdirAll(dir, 0o755)
	if err != nil {
		return errExport.Wrap(err, dir)
	}
	w, err := fs.newWriter(dir, fs.root)
	if err != nil {
		return errExport.Wrap(err, dir)
	}
	if err := w.run(w.exported(changes)); err != nil {
		return errExport.Wrap(err, dir)
	}
	return nil
}

// exported turns changes of the tree into things to be made in an empty folder.
func (w *writer) exported(changes []change) []change {
	var list []change
	var removed strings.Builder
	for _, c := range changes {
		c.path = c.at.path()
		if c.kind == changeGone || c.inode.Type() == unix.S_IFSOCK && c.lower != nil {
			removed.WriteString(c.path + "\n")
			continue
		}
		c.path = strings.TrimPrefix(c.path, "/")
		if c.path == "" {
			continue
		}
		c.kind, c.lower = changeNew, nil
		list = append(list, c)
	}
	if removed.Len() > 0 {
		w.removed = removed.String()
	}
	return list
}

// modeOf is the permissions that an object gets on the host.
func modeOf(i *Inode) uint32 { return i.mode & 0o7777 }

// mayReplace tells whether rename puts an object of type mode over what is on
// the host. A socket is not put anywhere.
func mayReplace(mode uint32, below *lower) bool {
	kind := mode & unix.S_IFMT
	return below == nil || kind != unix.S_IFDIR && kind != unix.S_IFSOCK && !below.isDir()
}
