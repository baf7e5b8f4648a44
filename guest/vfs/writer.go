package vfs

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// writer puts changes into a folder of the host. All new contents are first
// staged in a folder of its own, so that nothing is overwritten that another
// change still needs; then old names are removed, then new ones put in place.
//
// It begins with a handle of the folder, and opens folders in it component by component
// without following links.
type writer struct {
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

// newWriter makes a writer for the folder that a handle stands for.
func (fs *FS) newWriter(folder int, top *Dentry) (*writer, error) {
	root, err := fs.openWithRoom(func() (int, error) {
		return unix.Openat(folder, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	return &writer{fs: fs, root: root, top: top, staged: map[*Inode]*stagedFile{}}, nil
}

// run makes all changes.
func (w *writer) run(changes []change) error {
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
func (w *writer) openStage() error {
	for n := 0; ; n++ {
		w.name = fmt.Sprintf(".heddle-%d", n)
		if w.top.inode.IsDir() {
			if _, errno := w.fs.child(w.fs.self(), w.top, w.name); errno == 0 {
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
		w.stage, err = w.open(w.root, w.name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		return err
	}
}

func (w *writer) closeStage() {
	_ = unix.Close(w.stage)
	_ = removeTree(w.root, w.name)
}

// fresh is a name in the staging folder that is not in use.
func (w *writer) fresh() string {
	w.next++
	return fmt.Sprint(w.next)
}

// writes tells whether the change needs a file put in place.
func (c *change) writes() bool {
	return (c.kind == changeNew || c.kind == changeData) && !c.inode.IsDir() && c.inode.Type() != unix.S_IFSOCK
}

// stageAll stages the content of all files that will be put in place.
func (w *writer) stageAll(changes []change) error {
	for _, c := range changes {
		if !c.writes() {
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
func (w *writer) stageText() error {
	fd, err := w.open(w.stage, removedList, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("%s: %w", removedList, err)
	}
	defer func() { _ = unix.Close(fd) }()
	return writeAll(fd, []byte(w.removed), 0)
}

// open opens a name in a folder without following links.
func (w *writer) open(dir int, name string, flags int, mode uint32) (int, error) {
	return w.fs.openWithRoom(func() (int, error) {
		return unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	})
}

// openWithRoom is Host.makeRoom for everything else.
func (fs *FS) openWithRoom(open func() (int, error)) (int, error) {
	fs.host.mu.Lock()
	defer fs.host.mu.Unlock()
	return fs.host.makeRoom(open)
}

// stageOne makes an object in the staging folder and returns its name.
func (w *writer) stageOne(i *Inode) (string, error) {
	name := w.fresh()
	if w.linkLower(i, name) {
		return name, nil
	}
	switch i.Type() {
	case unix.S_IFLNK:
		text, errno := i.readlink(nil)
		if errno != 0 {
			return "", errno
		}
		return name, unix.Symlinkat(text, w.stage, name)
	case unix.S_IFIFO:
		return name, unix.Mkfifoat(w.stage, name, 0o600)
	case unix.S_IFREG:
		return name, w.copyContent(i, name)
	}
	return "", unix.EPERM // devices of the host stay where they are
}

// linkLower stages an unchanged object of the mount itself as a hard link.
func (w *writer) linkLower(i *Inode, name string) bool {
	if i.lower == nil || i.dataChanged || w.mount == nil || i.lower.top() != w.mount || i.lower == w.mount {
		return false
	}
	h := w.fs.host
	h.mu.Lock()
	defer h.mu.Unlock()
	dir, errno := h.dir(i.lower.parent)
	if errno != 0 {
		return false
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, i.lower.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || !i.lower.attr.same(&st) {
		return false
	}
	return unix.Linkat(dir, i.lower.name, w.stage, name, 0) == nil
}

// top is the root of the lower tree that n is in.
func (n *lower) top() *lower {
	for n.parent != nil {
		n = n.parent
	}
	return n
}

// copyContent writes a file's bytes, leaving its holes.
func (w *writer) copyContent(i *Inode, name string) error {
	fd, err := w.open(w.stage, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return i.copyTo(fd)
}

// copyTo makes an open file of the host hold the same bytes as i.
func (i *Inode) copyTo(fd int) error {
	buf := make([]byte, 1<<18)
	size := i.Size()
	for off := int64(0); off < size; {
		data := i.object().NextData(off)
		if data >= size {
			break
		}
		end := i.object().NextHole(data)
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

// unlockAll lets folders be written to whose modes were changed; finishAll sets
// the modes that they end with.
func (w *writer) unlockAll(changes []change) error {
	for _, c := range changes {
		if c.kind != changeMeta || !c.inode.IsDir() {
			continue
		}
		err := w.in(c.path, func(dir int, name string) error { return chmodAt(dir, name, modeOf(c.inode)|0o700) })
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
	}
	return nil
}

// removeAll removes the names that are gone and those that something of another
// kind takes, the last paths first.
func (w *writer) removeAll(changes []change) error {
	for _, c := range slices.Backward(changes) {
		if c.lower == nil || c.kind != changeGone && (c.kind != changeNew || mayReplace(c.inode.mode, c.lower)) {
			continue
		}
		if err := w.in(c.path, removeTree); err != nil && err != unix.ENOENT {
			return fmt.Errorf("remove %s: %w", c.path, err)
		}
	}
	return nil
}

// makeAll makes folders and puts staged objects in place.
func (w *writer) makeAll(changes []change) error {
	if w.removed != "" {
		if err := unix.Renameat(w.stage, removedList, w.root, removedList); err != nil {
			return fmt.Errorf("%s: %w", removedList, err)
		}
	}
	for _, c := range changes {
		var err error
		switch {
		case c.kind == changeNew && c.inode.IsDir():
			err = w.in(c.path, func(dir int, name string) error { return unix.Mkdirat(dir, name, 0o700) })
			if err == unix.EEXIST && w.mount == nil {
				err = nil // an export adds to what is there
			}
		case c.writes():
			err = w.in(c.path, func(dir int, name string) error { return w.put(c.inode, dir, name) })
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
	}
	return nil
}

// put gives a staged object one of its names.
func (w *writer) put(i *Inode, dir int, name string) error {
	s := w.staged[i]
	if s.places--; s.places == 0 {
		return unix.Renameat(w.stage, s.name, dir, name)
	}
	link := w.fresh()
	if err := unix.Linkat(w.stage, s.name, w.stage, link, 0); err != nil {
		// A file system without hard links gets a copy.
		if link, err = w.stageOne(i); err != nil {
			return err
		}
	}
	return unix.Renameat(w.stage, link, dir, name)
}

// finishAll sets modes, owners and times, those of folders after what is in
// them.
func (w *writer) finishAll(changes []change) error {
	for _, c := range slices.Backward(changes) {
		if c.inode == nil || c.inode.Type() == unix.S_IFSOCK {
			continue
		}
		err := w.in(c.path, func(dir int, name string) error { return w.finish(c.inode, dir, name) })
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
	}
	return nil
}

// finish sets the attributes of one object. The owner is set as far as the host
// allows.
func (w *writer) finish(i *Inode, dir int, name string) error {
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
	if err := chmodAt(dir, name, modeOf(i)); err != nil {
		return err
	}
	if i.timesSet && w.fs.host.times {
		times := []unix.Timespec{unix.NsecToTimespec(i.atime), unix.NsecToTimespec(i.mtime)}
		return unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW)
	}
	return nil
}

// in calls f with the folder that a path of the host leads to and the path's
// last name. Folders that are missing, above what is exported or above another
// mount, are made.
func (w *writer) in(name string, f func(dir int, name string) error) error {
	at := w.root
	parts := strings.Split(name, "/")
	if name == "" {
		return f(w.root, ".")
	}
	for n, part := range parts[:len(parts)-1] {
		next, err := w.enter(at, part, path.Join(parts[:n+1]...))
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

// enter opens a folder in a folder.
func (w *writer) enter(at int, name, whole string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY
	fd, err := w.open(at, name, flags, 0)
	if err != unix.ENOENT {
		return fd, err
	}
	mode := uint32(0o755)
	if d, errno := w.fs.Lookup(w.fs.self(), w.top, whole, false); errno == 0 {
		mode = modeOf(d.inode) | 0o700
	}
	if err := unix.Mkdirat(at, name, mode); err != nil {
		return -1, err
	}
	return w.open(at, name, flags, 0)
}
