package vfs

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// MountInfo is a line of the mount table.
type MountInfo struct {
	Path    string // guest path
	Super   *Super
	Source  string // first field of /proc/mounts
	Options string // fourth field
}

// mountPoint is the guest path of a host folder named by Config.Mounts.
type mountPoint struct {
	guest    string // path of the guest
	host     string // path of the host without symbolic links
	writable bool
}

// ownFolders are the folders of the root that the guest has of its own.
var ownFolders = []string{"dev", "proc", "sys"}

// scratchFolders are there for temporary files.
var scratchFolders = []struct {
	path string
	mode uint32
}{
	{"/run", 0o755}, {"/run/lock", 0o1777}, {"/tmp", 0o1777}, {"/var/tmp", 0o1777}, {"/root", 0o700},
}

// New makes the file system of a configuration. The error names the mount or folder
// that cannot be opened.
func New(cfg Config) (*FS, error) {
	fs := &FS{
		ram: cfg.RAM, memory: cfg.Memory, host: newHost(cfg.HostTimes, cfg.FileTimeNS), startNS: cfg.FileTimeNS,
		maxInodes: cfg.MaxInodes, linked: map[hostID]*Inode{}, unseen: map[string]bool{}, touched: map[*lower]bool{}, nodeWatches: map[nodeKey][]Watch{},
		Leases: defaultLeases, protectedHardlinks: true, protectedSymlinks: true,
	}
	if fs.maxInodes == 0 {
		fs.maxInodes = cfg.RAM.Limit() / 2
	}
	for _, path := range cfg.Hidden {
		fs.host.hidePath(path)
	}
	if err := fs.host.store(cfg.Stored); err != nil {
		return nil, err
	}
	b := lowerBuilder{fs: fs, cfg: &cfg}
	if err := b.buildTree(); err != nil {
		_ = fs.host.Close()
		return nil, err
	}
	fs.root = &Dentry{inode: fs.lowerInode(b.root), mounted: true}
	fs.addMount(MountInfo{Path: "/", Super: superOverlay, Source: "overlay", Options: "rw,relatime"})
	fs.makeDevices()
	fs.makeQueues()
	fs.makeTerminals()
	for _, m := range b.mounts {
		fs.openMount(m)
	}
	return fs, nil
}

// openMount notes a mount in the table, and for Commit if it is writable.
func (fs *FS) openMount(m *mountPoint) {
	d, errno := fs.Lookup(fs.ownContext(), nil, m.guest, false)
	if errno != 0 {
		panic("bug: no mount at " + m.guest)
	}
	switch {
	case m.writable:
		fs.writable = append(fs.writable, d)
	case d != fs.root:
		fs.readOnly = append(fs.readOnly, d)
	}
	fs.addMount(MountInfo{Path: m.guest, Super: superOverlay, Source: "overlay", Options: "rw,relatime"})
}

// ownContext is the context for the file system's own operations.
func (fs *FS) ownContext() *Ctx { return &Ctx{Cred: NewCred(0, 0), Root: fs.root, Cwd: fs.root} }

func (fs *FS) addMount(m MountInfo) {
	fs.mounts = slices.DeleteFunc(fs.mounts, func(o MountInfo) bool { return o.Path == m.Path })
	fs.mounts = append(fs.mounts, m)
}

// Mounts lists the mount table in the order of mounting.
func (fs *FS) Mounts() []MountInfo { return fs.mounts }

// lowerBuilder assembles the lower tree.
type lowerBuilder struct {
	fs     *FS
	cfg    *Config
	root   *lower // visible to the guest
	host   *lower // the host's root
	mounts []*mountPoint
}

func (b *lowerBuilder) buildTree() error {
	if err := b.buildBase(); err != nil {
		return err
	}
	b.addScratchFolders()
	for _, m := range b.cfg.Mounts {
		if err := b.addHostMount(m); err != nil {
			return err
		}
	}
	return b.checkWritable()
}

// addScratchFolders makes the folders for temporary files.
func (b *lowerBuilder) addScratchFolders() {
	for _, s := range scratchFolders {
		b.scratchFolder(s.path, s.mode, 0, 0)
	}
	if home := strings.Trim(path.Clean(b.cfg.Home), "/."); home != "" {
		b.scratchFolder(home, 0o700, b.cfg.UID, b.cfg.GID)
	}
}

// buildBase makes the tree without mounts.
func (b *lowerBuilder) buildBase() error {
	if b.cfg.RootFS != "" {
		root, err := b.fs.host.openTop(b.cfg.RootFS)
		if err == nil && !root.isDir() {
			err = unix.ENOTDIR
		}
		if err != nil {
			return errRoot.Wrap(err, b.cfg.RootFS)
		}
		b.root = root
		return nil
	}
	host, err := b.fs.host.openTop("/")
	if err != nil {
		return err
	}
	b.root, b.host = b.newFolder(0o755, 0, 0), host
	for _, p := range slices.Sorted(slices.Values(b.cfg.Paths)) {
		b.exposePath(p)
	}
	return nil
}

// newFolder makes a folder that the host does not have.
func (b *lowerBuilder) newFolder(mode, uid, gid uint32) *lower {
	t := b.fs.host.fixedNS
	return &lower{
		host: b.fs.host, synthetic: true, overrides: map[string]*lower{},
		attr: lowerAttr{mode: unix.S_IFDIR | mode, uid: uid, gid: gid, nlink: 2, atime: t, mtime: t, ctime: t},
	}
}

// exposePath makes a path of the host visible, and the target of each symbolic link on the
// way. The guest's own folders (/proc, /sys, /dev) stay hidden.
func (b *lowerBuilder) exposePath(name string) {
	rest := strings.Split(strings.Trim(path.Clean(name), "/"), "/")
	at, seen := b.host, []string{}
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == "..":
			at, seen = b.parentOf(at), seen[:max(0, len(seen)-1)]
			continue
		case len(seen) == 0 && slices.Contains(ownFolders, name):
			return
		}
		next, errno := at.findChild(name)
		if errno != 0 || next == nil {
			return
		}
		if !next.isSymlink() {
			at, seen = next, append(seen, name)
			continue
		}
		b.addAt(append(slices.Clone(seen), name), next)
		text, errno := next.linkText()
		if links++; errno != 0 || links > maxLinks {
			return
		}
		if strings.HasPrefix(text, "/") {
			at, seen = b.host, seen[:0]
		}
		rest = append(strings.Split(text, "/"), rest...)
	}
	b.addAt(seen, at)
}

func (b *lowerBuilder) parentOf(n *lower) *lower {
	if n.parent == nil {
		return n
	}
	return n.parent
}

// addAt makes n visible at a path, unless it is already.
func (b *lowerBuilder) addAt(at []string, n *lower) {
	if len(at) == 0 {
		b.root = n
		return
	}
	dir := b.folderAt(at[:len(at)-1])
	name := at[len(at)-1]
	if have, errno := dir.findChild(name); errno == 0 && have == n {
		return
	}
	dir.replaceName(name, n)
}

// replaceName replaces a name of dir by n.
func (n *lower) replaceName(name string, o *lower) {
	if n.overrides == nil {
		n.overrides = map[string]*lower{}
	}
	old := n.overrides[name]
	n.overrides[name] = o
	if n.synthetic && o.isDir() && (old == nil || !old.isDir()) {
		n.attr.nlink++
	}
}

// folderAt finds the folder at a path and makes missing ones. A link or file in the way
// is replaced.
func (b *lowerBuilder) folderAt(at []string) *lower {
	dir := b.root
	for _, name := range at {
		next, errno := dir.findChild(name)
		if errno != 0 || next == nil || !next.isDir() {
			next = b.newFolder(0o755, 0, 0)
			dir.replaceName(name, next)
		}
		dir = next
	}
	return dir
}

// scratchFolder makes an empty folder unless there is one; a folder that only leads to
// a visible path gets the right mode.
func (b *lowerBuilder) scratchFolder(name string, mode, uid, gid uint32) {
	at := b.resolveLinks(name)
	dir := b.folderAt(at[:len(at)-1])
	have, errno := dir.findChild(at[len(at)-1])
	switch {
	case errno != 0 || have == nil:
		dir.replaceName(at[len(at)-1], b.newFolder(mode, uid, gid))
	case have.synthetic:
		have.attr.mode, have.attr.uid, have.attr.gid = unix.S_IFDIR|mode, uid, gid
	}
}

// resolveLinks follows the symbolic links of the lower tree in a guest path, such as
// /var/run, so that the guest finds a mount that is made there. A name that does not
// exist stands for itself.
func (b *lowerBuilder) resolveLinks(name string) []string {
	rest := strings.Split(strings.Trim(path.Clean(name), "/"), "/")
	var seen []string
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			seen = seen[:max(0, len(seen)-1)]
			continue
		}
		n := b.nodeAt(append(slices.Clone(seen), name))
		if n == nil || !n.isSymlink() || links >= maxLinks {
			seen = append(seen, name)
			continue
		}
		links++
		text, _ := n.linkText()
		if strings.HasPrefix(text, "/") {
			seen = nil
		}
		rest = append(strings.Split(text, "/"), rest...)
	}
	return seen
}

// nodeAt returns the visible node at a path without links, or nil.
func (b *lowerBuilder) nodeAt(at []string) *lower {
	n := b.root
	for _, name := range at {
		if !n.isDir() {
			return nil
		}
		next, errno := n.findChild(name)
		if errno != 0 || next == nil {
			return nil
		}
		n = next
	}
	return n
}

// addHostMount mounts a host folder or file at a guest path.
func (b *lowerBuilder) addHostMount(m Mount) error {
	if !path.IsAbs(m.Guest) {
		return errMountPath.New(m.Host, m.Guest)
	}
	n, err := b.fs.host.openTop(m.Host)
	if err != nil {
		return errMountOpen.Wrap(err, m.Host, m.Guest)
	}
	at := b.resolveLinks(m.Guest)
	if kind := n.attr.mode & unix.S_IFMT; kind != unix.S_IFDIR && (kind != unix.S_IFREG || len(at) == 0) {
		return errMountKind.New(m.Host, m.Guest)
	}
	if len(at) > 0 && slices.Contains(ownFolders, at[0]) {
		return errMountOwn.New(m.Host, m.Guest)
	}
	n.mount = &mountPoint{guest: "/" + strings.Join(at, "/"), host: n.name, writable: m.Writable}
	b.mounts = slices.DeleteFunc(b.mounts, func(o *mountPoint) bool { return isWithin(o.guest, n.mount.guest) })
	b.mounts = append(b.mounts, n.mount)
	if len(at) == 0 {
		b.root = n
		b.addScratchFolders()
		return nil
	}
	b.folderAt(at[:len(at)-1]).replaceName(at[len(at)-1], n)
	return nil
}

// checkWritable refuses writable mounts of the same files, whose changes would
// contradict each other.
func (b *lowerBuilder) checkWritable() error {
	for i, m := range b.mounts {
		for _, o := range b.mounts[:i] {
			if m.writable && o.writable && (isWithin(m.host, o.host) || isWithin(o.host, m.host)) {
				return errMountOverlap.New(m.host, m.guest, o.host, o.guest)
			}
		}
	}
	return nil
}

// isWithin reports whether a clean absolute path is top or lies under it.
func isWithin(name, top string) bool {
	return name == top || strings.HasPrefix(name, strings.TrimSuffix(top, "/")+"/")
}

// makeFolder finds or makes the folder at a path for the file system's own use.
func (fs *FS) makeFolder(name string) *Dentry {
	at, c := fs.root, fs.ownContext()
	for _, part := range strings.Split(strings.Trim(name, "/"), "/") {
		d, errno := fs.findChild(c, at, part)
		if errno != 0 || !d.inode.IsDir() {
			d = &Dentry{parent: at, name: part, inode: fs.newInode(at.inode.super, unix.S_IFDIR|0o755, 0, 0)}
			at.inode.dir.entries[part] = d
			at.inode.dir.sorted = nil
			at.inode.nlink++
		}
		at = d
	}
	return at
}
