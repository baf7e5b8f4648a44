package vfs

import (
	"container/list"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Limits of open host handles; a closed handle is opened again when it is needed. If
// the host allows this process fewer descriptors, a part of these is left for
// everything else.
const (
	maxHostDirs  = 64
	maxHostFiles = 256
	otherHandles = 40
)

// handleLimits are the limits under the host's own. No guest can see them.
func handleLimits() (dirs, files int) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= otherHandles+maxHostDirs+maxHostFiles {
		return maxHostDirs, maxHostFiles
	}
	most := max(0, int(limit.Cur)-otherHandles)
	return max(1, most/5), max(1, most*4/5)
}

// Host reads the folders of the host that guests see. All copies of a file system share
// one Host, also copies that run at the same time, hence the lock. Its answers are a
// function of the host's files alone. A file that a guest has opened may be replaced on
// the host. It may also be written to, if it is small enough to have been kept, or the
// guest does not read the overwritten bytes; any other change that is noticed is an EIO
// for the guest and is reported by Inputs and by Close.
type Host struct {
	mu      sync.Mutex
	times   bool
	fixedNS int64 // shown as the time of files unless times is set
	dirs    handleCache
	files   handleCache
	roots   []*lower
	hidden  map[string][]string      // by the last name: folders in which the name is invisible to guests
	stored  map[string]*lower        // by path: files that take the place of the host's
	folders map[string]*storedFolder // by path: folders as they were
	stdin   *StdinData
	keep    int64 // bytes of files that may still be kept
	failed  error // of the first file that changed under the run or could not be read
}

func newHost(times bool, fixedNS int64) *Host {
	dirs, files := handleLimits()
	return &Host{times: times, fixedNS: fixedNS, dirs: handleCache{limit: dirs}, files: handleCache{limit: files}, keep: maxKept}
}

// SharedInSnapshot marks that copies of a file system share the handles.
func (h *Host) SharedInSnapshot() {}

// Close closes all handles. It fails if a host file was seen to change while it was
// visible to the guest.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dirs.closeAll()
	h.files.closeAll()
	for _, r := range h.roots {
		_ = unix.Close(r.fd)
	}
	h.roots = nil
	return h.failed
}

// Failed is the first failure of the host that the guest did not cause, or nil.
func (fs *FS) Failed() error {
	fs.host.mu.Lock()
	defer fs.host.mu.Unlock()
	return fs.host.failed
}

// openTop opens a folder or file of the host, following symbolic links, as the top
// of a tree of lower nodes.
func (h *Host) openTop(path string) (*lower, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	n := &lower{host: h, name: path, fd: fd, attr: h.visibleAttr(&st)}
	h.restore(n, nil)
	h.roots = append(h.roots, n)
	return n, nil
}

// visibleAttr selects the host's attributes that a guest may see.
func (h *Host) visibleAttr(st *unix.Stat_t) lowerAttr {
	a := lowerAttr{
		mode: st.Mode, uid: st.Uid, gid: st.Gid, nlink: uint32(st.Nlink), size: st.Size, rdev: st.Rdev,
		id: hostID{st.Dev, st.Ino}, stamp: unix.TimespecToNsec(st.Mtim),
		atime: h.fixedNS, mtime: h.fixedNS, ctime: h.fixedNS,
	}
	if h.times {
		a.atime, a.mtime, a.ctime = unix.TimespecToNsec(st.Atim), a.stamp, unix.TimespecToNsec(st.Ctim)
	}
	return a
}

// hidePath makes a path of the host invisible. A folder that does not exist needs no
// hiding.
func (h *Host) hidePath(path string) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return
	}
	if h.hidden == nil {
		h.hidden = map[string][]string{}
	}
	name := filepath.Base(path)
	h.hidden[name] = append(h.hidden[name], dir)
}

// isHidden reports whether a name in a folder of the host is invisible.
func (h *Host) isHidden(dir *lower, name string) bool {
	folders := h.hidden[name]
	return len(folders) > 0 && slices.Contains(folders, dir.hostPath())
}

// folderHandle returns a handle of a host folder for the *at calls. It is valid until
// the next call.
func (h *Host) folderHandle(n *lower) (int, unix.Errno) {
	if n.parent == nil {
		return n.fd, 0
	}
	if fd, ok := h.dirs.findHandle(n); ok {
		return fd, 0
	}
	fd, errno := h.openVerified(n, unix.O_PATH|unix.O_DIRECTORY)
	if errno == 0 {
		h.dirs.addHandle(n, fd)
	}
	return fd, errno
}

// fileHandle returns a handle for reading a regular file. It is valid until the next
// call.
func (h *Host) fileHandle(n *lower) (int, unix.Errno) {
	if fd, ok := h.files.findHandle(n); ok {
		return fd, 0
	}
	fd, errno := h.openVerified(n, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errno == 0 {
		h.files.addHandle(n, fd)
	}
	return fd, errno
}

// openVerified opens n in its folder and verifies that it is the object that was seen
// before. For a file that was read the bytes decide, when they are read again.
func (h *Host) openVerified(n *lower, flags int) (int, unix.Errno) {
	fd, errno := h.openUnverified(n, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if errno != 0 {
		return -1, errno
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || !n.attr.matches(&st) && (n.contents == nil || st.Mode&unix.S_IFMT != unix.S_IFREG) {
		_ = unix.Close(fd)
		return -1, h.noteFailure(n, errOtherBytes)
	}
	return fd, 0
}

func (h *Host) openUnverified(n *lower, flags int) (int, unix.Errno) {
	if n.parent == nil {
		fd, err := h.retryWithRoom(func() (int, error) { return openRoot(n, flags) })
		return h.checkOpened(n, fd, err)
	}
	dir, errno := h.folderHandle(n.parent)
	if errno != 0 {
		return -1, errno
	}
	fd, err := h.retryWithRoom(func() (int, error) { return unix.Openat(dir, n.name, flags, 0) })
	if err == unix.ENOENT || err == unix.ELOOP || err == unix.ENOTDIR {
		err = errOtherBytes
	}
	return h.checkOpened(n, fd, err)
}

// checkOpened returns the result of opening n. An error that is not the guest's concern
// is a failure of the run.
func (h *Host) checkOpened(n *lower, fd int, err error) (int, unix.Errno) {
	if err == errOtherBytes || lacksDescriptors(err) {
		return -1, h.noteFailure(n, err)
	}
	return fd, errnoOf(err)
}

// lacksDescriptors reports whether the host has no descriptor left.
func lacksDescriptors(err error) bool { return err == unix.EMFILE || err == unix.ENFILE }

// retryWithRoom calls a function that opens something, and closes handles while the
// host has no descriptor left. The most recently used folder stays open.
func (h *Host) retryWithRoom(open func() (int, error)) (int, error) {
	for {
		fd, err := open()
		switch {
		case !lacksDescriptors(err):
			return fd, err
		case h.files.order.Len() > 0:
			h.files.closeElement(h.files.order.Back())
		case h.dirs.order.Len() > 1:
			h.dirs.closeElement(h.dirs.order.Back())
		default:
			return fd, err
		}
	}
}

// openRoot opens the object of the O_PATH handle of a root.
func openRoot(n *lower, flags int) (int, error) {
	if n.isDir() {
		return unix.Openat(n.fd, ".", flags, 0)
	}
	return unix.Open(fmt.Sprintf("/proc/self/fd/%d", n.fd), flags&^unix.O_NOFOLLOW, 0)
}

// noteFailure remembers that n has changed, or cannot be read.
func (h *Host) noteFailure(n *lower, err error) unix.Errno {
	if h.failed == nil {
		h.failed = readFailure(n.hostPath(), err)
	}
	return unix.EIO
}

// errnoOf converts an error of package unix to an Errno.
func errnoOf(err error) unix.Errno {
	if err == nil {
		return 0
	}
	if errno, ok := err.(unix.Errno); ok {
		return errno
	}
	return unix.EIO
}

// folderNames lists the names in a host folder, sorted, without "." and "..".
func (h *Host) folderNames(n *lower) ([]string, unix.Errno) {
	fd, errno := h.openVerified(n, unix.O_RDONLY|unix.O_DIRECTORY)
	if errno != 0 {
		return nil, errno
	}
	defer func() { _ = unix.Close(fd) }()
	var names []string
	buf := make([]byte, 1<<16)
	for {
		got, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return nil, errnoOf(err)
		}
		if got <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:got], -1, names)
	}
	slices.Sort(names)
	return names, 0
}

// handleCache is a bounded set of open handles; the least recently used one is closed
// first.
type handleCache struct {
	limit int
	open  map[*lower]*list.Element
	order list.List // of handle, the last used one in front
}

type handle struct {
	node *lower
	fd   int
}

func (s *handleCache) findHandle(n *lower) (int, bool) {
	e, ok := s.open[n]
	if !ok {
		return -1, false
	}
	s.order.MoveToFront(e)
	return e.Value.(handle).fd, true
}

func (s *handleCache) addHandle(n *lower, fd int) {
	if s.open == nil {
		s.open = map[*lower]*list.Element{}
	}
	if len(s.open) >= s.limit {
		s.closeElement(s.order.Back())
	}
	s.open[n] = s.order.PushFront(handle{n, fd})
}

// remove closes the handle of n, if there is one.
func (s *handleCache) removeHandle(n *lower) {
	if e, ok := s.open[n]; ok {
		s.closeElement(e)
	}
}

func (s *handleCache) closeElement(e *list.Element) {
	old := s.order.Remove(e).(handle)
	delete(s.open, old.node)
	_ = unix.Close(old.fd)
}

func (s *handleCache) closeAll() {
	for s.order.Len() > 0 {
		s.closeElement(s.order.Back())
	}
}

// joinHost appends a component to a host path.
func joinHost(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }
