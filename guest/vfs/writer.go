package vfs

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// treeWriter writes changes to a folder of the host. All new contents are first staged in a
// separate folder, so that nothing is overwritten that another change still needs; then
// old names are removed, then new ones moved into place.
//
// It begins with a handle of the folder, and opens folders in it component by component
// without following links.
type treeWriter struct {
	fs      *FS
	root    int     // handle of the folder
	mount   *lower  // the top that files may be linked from, nil for an export
	top     *Dentry // the guest's folder
	stage   int     // handle of the staging folder
	name    string  // of the staging folder
	next    int     // number of the next staged file
	staged  map[*Inode]*stagedFile
	removed string // text of removedList
}

// stagedFile is content that waits for its names.
type stagedFile struct {
	name   string
	places int // names that it still has to get
}

// newWriter makes a writer for the folder of a handle.
func (fs *FS) newWriter(folder int, top *Dentry) (*treeWriter, error) {
	root, err := fs.openWithRoom(func() (int, error) {
		return unix.Openat(folder, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	return &treeWriter{fs: fs, root: root, top: top, staged: map[*Inode]*stagedFile{}}, nil
}

// writeChanges makes all changes.
func (w *treeWriter) writeChanges(changes []change) error {
	defer func() { _ = unix.Close(w.root) }()
	if err := w.openStage(); err != nil {
		return err
	}
	defer w.closeStage()
	for _, step := range []func([]change) error{w.stageAll, w.unlockAll, w.removeAll, w.makeAll, w.finishAll} {
		if err := step(changes); err != nil {
			return err
		}
	}
	return nil
}

// openStage makes the staging folder under a name that neither side uses.
func (w *treeWriter) openStage() error {
	for n := 0; ; n++ {
		w.name = fmt.Sprintf(".heddle-%d", n)
		if w.top.inode.IsDir() {
			if _, errno := w.fs.findChild(w.fs.ownContext(), w.top, w.name); errno == 0 {
				continue
			}
		}
		err := unix.Mkdirat(w.root, w.name, 0o700)
		if err == unix.EEXIST {
			continue
		}
		if err != nil {
			return fmt.Errorf("make a folder for new files: %w", err)
		}
		w.stage, err = w.openName(w.root, w.name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		return err
	}
}

func (w *treeWriter) closeStage() {
	_ = unix.Close(w.stage)
	_ = removeTree(w.root, w.name)
}

// freshName is a name in the staging folder that is not in use.
func (w *treeWriter) freshName() string {
	w.next++
	return fmt.Sprint(w.next)
}

// needsFile reports whether the change needs a staged file.
func (c *change) needsFile() bool {
	return (c.kind == changeNew || c.kind == changeData) && !c.inode.IsDir() && c.inode.Type() != unix.S_IFSOCK
}

// stageAll stages the content of all files that will be moved into place.
func (w *treeWriter) stageAll(changes []change) error {
	for _, c := range changes {
		if !c.needsFile() {
			continue
		}
		if s := w.staged[c.inode]; s != nil {
			s.places++
			continue
		}
		name, err := w.stageOne(c.inode)
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
		w.staged[c.inode] = &stagedFile{name, 1}
	}
	if w.removed != "" {
		return w.stageText()
	}
	return nil
}

// stageText stages the list of removed names.
func (w *treeWriter) stageText() error {
	fd, err := w.openName(w.stage, removedList, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("%s: %w", removedList, err)
	}
	defer func() { _ = unix.Close(fd) }()
	return writeAll(fd, []byte(w.removed), 0)
}

// openName opens a name in a folder without following links.
func (w *treeWriter) openName(dir int, name string, flags int, mode uint32) (int, error) {
	return w.fs.openWithRoom(func() (int, error) {
		return unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	})
}

// openWithRoom is Host.retryWithRoom for everything else.
func (fs *FS) openWithRoom(open func() (int, error)) (int, error) {
	fs.host.mu.Lock()
	defer fs.host.mu.Unlock()
	return fs.host.retryWithRoom(open)
}

// stageOne makes an object in the staging folder and returns its name.
func (w *treeWriter) stageOne(i *Inode) (string, error) {
	name := w.freshName()
	if w.linkLower(i, name) {
		return name, nil
	}
	switch i.Type() {
	case unix.S_IFLNK:
		text, errno := i.linkText(nil)
		if errno != 0 {
			return "", errno
		}
		return name, unix.Symlinkat(text, w.stage, name)
	case unix.S_IFIFO:
		return name, unix.Mkfifoat(w.stage, name, 0o600)
	case unix.S_IFREG:
		return name, w.copyContent(i, name)
	}
	return "", unix.EPERM // devices of the host are not moved
}

// linkLower stages an unchanged object of the mount itself as a hard link.
func (w *treeWriter) linkLower(i *Inode, name string) bool {
	if i.lower == nil || i.dataChanged || w.mount == nil || i.lower.rootOf() != w.mount || i.lower == w.mount {
		return false
	}
	h := w.fs.host
	h.mu.Lock()
	defer h.mu.Unlock()
	dir, errno := h.folderHandle(i.lower.parent)
	if errno != 0 {
		return false
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, i.lower.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || !i.lower.attr.matches(&st) {
		return false
	}
	return unix.Linkat(dir, i.lower.name, w.stage, name, 0) == nil
}

// rootOf is the root of the lower tree that n is in.
func (n *lower) rootOf() *lower {
	for n.parent != nil {
		n = n.parent
	}
	return n
}

// copyContent writes a file's bytes, leaving its holes.
func (w *treeWriter) copyContent(i *Inode, name string) error {
	fd, err := w.openName(w.stage, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return i.copyTo(fd)
}

// copyTo makes an open file of the host have the same bytes as i.
func (i *Inode) copyTo(fd int) error {
	buf := make([]byte, 1<<18)
	size := i.Size()
	for off := int64(0); off < size; {
		data := i.contentObject().NextData(off)
		if data >= size {
			break
		}
		end := i.contentObject().NextHole(data)
		n, errno := i.readAt(buf[:min(int64(len(buf)), end-data)], data)
		if errno != 0 {
			return errno
		}
		if err := writeAll(fd, buf[:n], data); err != nil {
			return err
		}
		off = data + int64(n)
	}
	return unix.Ftruncate(fd, size)
}

func writeAll(fd int, p []byte, off int64) error {
	for len(p) > 0 {
		n, err := unix.Pwrite(fd, p, off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// unlockAll makes folders writable whose modes were changed; finishAll sets their final
// modes.
func (w *treeWriter) unlockAll(changes []change) error {
	for _, c := range changes {
		if c.kind != changeMeta || !c.inode.IsDir() {
			continue
		}
		err := w.withFolder(c.path, func(dir int, name string) error { return chmodAt(dir, name, permissionsOf(c.inode)|0o700) })
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
	}
	return nil
}

// removeAll removes deleted names and names that an object of another kind gets, the
// last paths first.
func (w *treeWriter) removeAll(changes []change) error {
	for _, c := range slices.Backward(changes) {
		if c.lower == nil || c.kind != changeGone && (c.kind != changeNew || mayReplace(c.inode.mode, c.lower)) {
			continue
		}
		if err := w.withFolder(c.path, removeTree); err != nil && err != unix.ENOENT {
			return fmt.Errorf("remove %s: %w", c.path, err)
		}
	}
	return nil
}

// makeAll makes folders and moves staged objects into place.
func (w *treeWriter) makeAll(changes []change) error {
	if w.removed != "" {
		if err := unix.Renameat(w.stage, removedList, w.root, removedList); err != nil {
			return fmt.Errorf("%s: %w", removedList, err)
		}
	}
	for _, c := range changes {
		var err error
		switch {
		case c.kind == changeNew && c.inode.IsDir():
			err = w.withFolder(c.path, func(dir int, name string) error { return unix.Mkdirat(dir, name, 0o700) })
			if err == unix.EEXIST && w.mount == nil {
				err = nil // an export adds to the folder's content
			}
		case c.needsFile():
			err = w.withFolder(c.path, func(dir int, name string) error { return w.placeStaged(c.inode, dir, name) })
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
	}
	return nil
}

// placeStaged gives a staged object one of its names.
func (w *treeWriter) placeStaged(i *Inode, dir int, name string) error {
	s := w.staged[i]
	if s.places--; s.places == 0 {
		return unix.Renameat(w.stage, s.name, dir, name)
	}
	link := w.freshName()
	if err := unix.Linkat(w.stage, s.name, w.stage, link, 0); err != nil {
		// A file system without hard links gets a copy.
		if link, err = w.stageOne(i); err != nil {
			return err
		}
	}
	return unix.Renameat(w.stage, link, dir, name)
}

// finishAll sets modes, owners and times, those of folders after their contents.
func (w *treeWriter) finishAll(changes []change) error {
	for _, c := range slices.Backward(changes) {
		if c.inode == nil || c.inode.Type() == unix.S_IFSOCK {
			continue
		}
		err := w.withFolder(c.path, func(dir int, name string) error { return w.finishObject(c.inode, dir, name) })
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
	}
	return nil
}

// finishObject sets the attributes of one object. The owner is set as far as the host allows.
func (w *treeWriter) finishObject(i *Inode, dir int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Uid != i.uid || st.Gid != i.gid {
		err := unix.Fchownat(dir, name, int(i.uid), int(i.gid), unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && err != unix.EPERM && err != unix.EINVAL {
			return err
		}
	}
	if i.IsSymlink() {
		return nil
	}
	if err := chmodAt(dir, name, permissionsOf(i)); err != nil {
		return err
	}
	if i.timesSet && w.fs.host.times {
		times := []unix.Timespec{unix.NsecToTimespec(i.atime), unix.NsecToTimespec(i.mtime)}
		return unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW)
	}
	return nil
}

// withFolder calls f with the folder of a path of the host and the path's last name.
// Missing folders above an exported name or another mount are made.
func (w *treeWriter) withFolder(name string, f func(dir int, name string) error) error {
	at := w.root
	parts := strings.Split(name, "/")
	if name == "" {
		return f(w.root, ".")
	}
	for n, part := range parts[:len(parts)-1] {
		next, err := w.openSubfolder(at, part, path.Join(parts[:n+1]...))
		if at != w.root {
			_ = unix.Close(at)
		}
		if err != nil {
			return err
		}
		at = next
	}
	if at != w.root {
		defer func() { _ = unix.Close(at) }()
	}
	return f(at, parts[len(parts)-1])
}

// openSubfolder opens a folder in a folder.
func (w *treeWriter) openSubfolder(at int, name, whole string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY
	fd, err := w.openName(at, name, flags, 0)
	if err != unix.ENOENT {
		return fd, err
	}
	mode := uint32(0o755)
	if d, errno := w.fs.Lookup(w.fs.ownContext(), w.top, whole, false); errno == 0 {
		mode = permissionsOf(d.inode) | 0o700
	}
	if err := unix.Mkdirat(at, name, mode); err != nil {
		return -1, err
	}
	return w.openName(at, name, flags, 0)
}
