package vfs

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Commit writes the changes below writable mounts to the host: new, changed, renamed
// and removed names, modes, and owners as far as the host allows. Each file appears or
// changes at once, except a file that is a mount by itself. Times are the host's,
// except the times that the guest set explicitly if Config.HostTimes was given. The order
// is that of the paths, mount by mount. Commit is called once, after the run; it calls
// Inputs before it changes anything. The error names the first path that could not be
// written; earlier paths are done.
func (fs *FS) Commit() error {
	if _, err := fs.Inputs(false); err != nil {
		return err
	}
	for _, top := range fs.writable {
		written, err := fs.commitMount(top)
		if err != nil {
			return errCommit.Wrap(err, top.Path(), top.inode.lower.hostPath())
		}
		if now, moved := top.inode.lower.mountTarget(); written && moved {
			return errMoved.New(top.inode.lower.hostPath(), top.Path(), now)
		}
	}
	return nil
}

// mountTarget reports whether the path of a mount leads to another folder than the
// mounted one, and where that is now.
func (n *lower) mountTarget() (now string, moved bool) {
	var st unix.Stat_t
	if err := unix.Stat(n.name, &st); err == nil && (hostID{st.Dev, st.Ino}) == n.attr.id {
		return "", false
	}
	now, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", n.fd))
	if err != nil {
		now = "gone"
	}
	return now, true
}

// commitMount writes the changes below a mount, and reports whether there were any.
func (fs *FS) commitMount(top *Dentry) (written bool, err error) {
	changes, errno := fs.diffLinks(top, mountBelow(top))
	if errno != 0 {
		return false, errno
	}
	if len(changes) == 0 {
		return false, nil
	}
	mount := top.inode.lower
	for i := range changes {
		changes[i].path = strings.TrimPrefix(changes[i].at.path()[len(top.joinNames(nil)):], "/")
	}
	if !mount.isDir() {
		return true, fs.commitFile(top.inode)
	}
	w, err := fs.newWriter(mount.fd, top)
	if err != nil {
		return false, err
	}
	w.mount = mount
	return true, w.writeChanges(changes)
}

// commitFile writes a mount that is a single file. Its folder does not belong to the
// mount, so nothing can be staged there: the file is written in place, through the
// handle from the run's start.
func (fs *FS) commitFile(i *Inode) error {
	var st unix.Stat_t
	if err := unix.Fstat(i.lower.fd, &st); err != nil || st.Nlink == 0 {
		return cmp.Or(err, error(unix.ENOENT))
	}
	fd, err := fs.openWithRoom(func() (int, error) { return openRoot(i.lower, unix.O_WRONLY|unix.O_CLOEXEC) })
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if i.dataChanged {
		if err := i.copyTo(fd); err != nil {
			return err
		}
	}
	return unix.Fchmod(fd, permissionsOf(i))
}

// removedList is the file of an export folder that lists removed names.
const removedList = ".heddle-removed"

// ExportFolder is a folder of the host for Export. It is opened before the run, so that
// replacing the path meanwhile cannot redirect the export.
type ExportFolder struct {
	path string
	fd   int
}

// OpenExport opens a folder, and makes it if it does not exist.
func OpenExport(path string) (*ExportFolder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, errExport.Wrap(err, path)
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errExport.Wrap(err, path)
	}
	return &ExportFolder{path, fd}, nil
}

// Close closes the folder.
func (e *ExportFolder) Close() { _ = unix.Close(e.fd) }

// Export writes the changes outside of writable mounts to a folder: each file that the
// guest made or changed under its guest path, with its mode. Removed names are listed
// in the file .heddle-removed, one in a line.
func (fs *FS) Export(to *ExportFolder) error {
	changes, errno := fs.overlayChanges()
	if errno != 0 {
		return errExport.Wrap(errno, to.path)
	}
	w, err := fs.newWriter(to.fd, fs.root)
	if err != nil {
		return errExport.Wrap(err, to.path)
	}
	if err := w.writeChanges(w.exportChanges(changes)); err != nil {
		return errExport.Wrap(err, to.path)
	}
	return nil
}

// exportChanges converts changes of the tree to changes of an empty folder.
func (w *treeWriter) exportChanges(changes []change) []change {
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

// permissionsOf is the permissions that an object gets on the host.
func permissionsOf(i *Inode) uint32 { return i.mode & 0o7777 }

// mayReplace reports whether rename can replace the object on the host by one of type
// mode. Sockets are not written.
func mayReplace(mode uint32, below *lower) bool {
	kind := mode & unix.S_IFMT
	return below == nil || kind != unix.S_IFDIR && kind != unix.S_IFSOCK && !below.isDir()
}
