package procfs

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Mount mounts /proc and /sys in the tree of files.
func Mount(fs *vfs.FS, k Kernel) {
	s := &system{fs: fs, kernel: k, bootNS: k.Machine().BootNS}
	fs.MountNode("/proc", vfs.SuperProc, s.newNode(procRoot, target{}).(vfs.DirNode))
	fs.MountNode("/sys", vfs.SuperSys, s.newNode(sysRoot, target{}).(vfs.DirNode))
}

// system is the two file systems of one guest.
type system struct {
	fs     *vfs.FS
	kernel Kernel
	bootNS int64 // shown as the time of all files
}

// target is the subject of a file.
type target struct {
	process, thread int32
	fd              int32 // or the number of a core
}

// request is one access to a file.
type request struct {
	*system
	target
	c *vfs.Ctx
}

// process is the process that the file is about; nil when it has ended.
func (r *request) process() Process { return r.kernel.Process(r.target.process) }

// entry is a file, folder or link of the tables. Exactly one of text, open, link,
// entries and list is set, or store alone. Entries never change.
type entry struct {
	name    string
	mode    uint32 // permissions; 0 means 0444, 0555 for folders, 0777 for links
	private bool   // only for the process's user and for root
	number  uint64 // set by numberEntries

	text  func(r *request) ([]byte, unix.Errno)
	store func(r *request, p []byte) unix.Errno

	open func(r *request, flags int) (vfs.FileImpl, unix.Errno)

	link   func(r *request) (string, unix.Errno)
	follow func(r *request) *vfs.Dentry
	rights func(p Process, fd int32) uint32 // permissions of a link, if they vary

	entries []*entry
	dynamic *dynamic
}

// dynamic is the part of a folder that the kernel's state fills.
type dynamic struct {
	entry *entry
	list  func(r *request) []int32
	// about returns the subject of the entry of a number, and whether it exists.
	about func(r *request, n int32) (target, bool)
	// names of the entries, if they are not the numbers alone
	prefix string
}

// SharedInSnapshot marks that entries never change.
func (*entry) SharedInSnapshot() {}

func init() {
	n := uint64(0)
	for _, root := range []*entry{procRoot, sysRoot} {
		numberEntries(root, &n)
	}
}

// numberEntries gives entries numbers, from which inode numbers are made.
func numberEntries(e *entry, n *uint64) {
	if e.number != 0 {
		return
	}
	*n++
	e.number = *n
	for _, kid := range e.entries {
		numberEntries(kid, n)
	}
	if e.dynamic != nil {
		numberEntries(e.dynamic.entry, n)
	}
}

// Bits of an inode number: 12 for the entry, 22 for the thread, 30 for the
// descriptor or core.
const (
	threadShift = 12
	fdShift     = threadShift + 22
)

// nodeBase is the common part of all nodes.
type nodeBase struct {
	*system
	entry *entry
	target
}

func (b *nodeBase) newRequest(c *vfs.Ctx) *request { return &request{b.system, b.target, c} }

func (b *nodeBase) attrOf(kind, mode uint32) vfs.Attr {
	if b.entry.mode != 0 {
		mode = b.entry.mode
	}
	a := vfs.Attr{
		Ino:  b.entry.number | uint64(b.thread)<<threadShift | uint64(b.fd+1)<<fdShift,
		Mode: kind | mode, Nlink: 1, TimeNS: b.bootNS,
	}
	if p := b.kernel.Process(b.process); p != nil {
		if s, ok := p.Status(0); ok {
			// Folders that everyone may list belong to the process in any case.
			if s.Dumpable || kind|mode == unix.S_IFDIR|0o555 {
				a.UID, a.GID = s.UID[1], s.GID[1]
			}
		}
	}
	return a
}

// mayExamine checks that the caller may see data that is private to a process.
func (b *nodeBase) mayExamine(c *vfs.Ctx) unix.Errno {
	if b.target.process == 0 {
		return 0
	}
	p := b.kernel.Process(b.target.process)
	if p == nil {
		return unix.ENOENT
	}
	if b.entry.private && !p.MayExamine(c) {
		return unix.EACCES
	}
	return 0
}

// newNode makes the node of an entry.
func (s *system) newNode(e *entry, t target) vfs.Node {
	b := nodeBase{s, e, t}
	switch {
	case e.follow != nil:
		return &magicNode{linkNode{b}}
	case e.link != nil:
		return &linkNode{b}
	case e.entries != nil || e.dynamic != nil:
		return &dirNode{b}
	}
	if e.open != nil {
		return &openNode{b}
	}
	return &textNode{b}
}

// openNode is a file that is not a text.
type openNode struct{ nodeBase }

func (o *openNode) Attr() vfs.Attr { return o.attrOf(unix.S_IFREG, 0o444) }

func (o *openNode) Open(c *vfs.Ctx, flags int) (vfs.FileImpl, unix.Errno) {
	if errno := o.mayExamine(c); errno != 0 {
		return nil, errno
	}
	return o.entry.open(o.newRequest(c), flags)
}

// dirNode is a folder.
type dirNode struct{ nodeBase }

func (d *dirNode) Attr() vfs.Attr {
	a := d.attrOf(unix.S_IFDIR, 0o555)
	a.Nlink = 2
	for _, e := range d.entry.entries {
		if e.entries != nil || e.dynamic != nil {
			a.Nlink++
		}
	}
	return a
}

func (d *dirNode) Child(c *vfs.Ctx, name string) (vfs.Node, unix.Errno) {
	if errno := d.mayExamine(c); errno != 0 {
		return nil, errno
	}
	for _, e := range d.entry.entries {
		if e.name == name {
			return d.newNode(e, d.target), 0
		}
	}
	if dyn := d.entry.dynamic; dyn != nil {
		if n, ok := dyn.parseNumber(name); ok {
			if t, ok := dyn.about(d.newRequest(c), n); ok {
				return d.newNode(dyn.entry, t), 0
			}
		}
	}
	return nil, unix.ENOENT
}

// parseNumber parses the number in an entry's name.
func (d *dynamic) parseNumber(name string) (int32, bool) {
	if len(name) <= len(d.prefix) || name[:len(d.prefix)] != d.prefix {
		return 0, false
	}
	n := int32(0)
	digits := name[len(d.prefix):]
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' || n > 1<<27 {
			return 0, false
		}
		n = n*10 + int32(c-'0')
	}
	return n, len(digits) == 1 || digits[0] != '0'
}

func (d *dirNode) List(c *vfs.Ctx) ([]vfs.Dirent, unix.Errno) {
	if errno := d.mayExamine(c); errno != 0 {
		return nil, errno
	}
	var list []vfs.Dirent
	add := func(name string, e *entry, t target) {
		a := d.newNode(e, t).Attr()
		list = append(list, vfs.Dirent{Name: name, Ino: a.Ino, Type: a.Mode & unix.S_IFMT})
	}
	for _, e := range d.entry.entries {
		add(e.name, e, d.target)
	}
	if dyn := d.entry.dynamic; dyn != nil {
		r := d.newRequest(c)
		for _, n := range dyn.list(r) {
			if t, ok := dyn.about(r, n); ok {
				add(dyn.prefix+decimal(n), dyn.entry, t)
			}
		}
	}
	slices.SortStableFunc(list, compareNames)
	return list, 0
}

// textNode is a file whose text is generated when it is opened.
type textNode struct{ nodeBase }

func (t *textNode) Attr() vfs.Attr { return t.attrOf(unix.S_IFREG, 0o444) }

func (t *textNode) Text(c *vfs.Ctx) ([]byte, unix.Errno) {
	if errno := t.mayExamine(c); errno != 0 {
		return nil, errno
	}
	if t.entry.text == nil {
		return nil, unix.EINVAL
	}
	return t.entry.text(t.newRequest(c))
}

func (t *textNode) Store(c *vfs.Ctx, p []byte) unix.Errno {
	if t.entry.store == nil {
		return unix.EIO
	}
	if errno := t.mayExamine(c); errno != 0 {
		return errno
	}
	return t.entry.store(t.newRequest(c), p)
}

// linkNode is a link to a path.
type linkNode struct{ nodeBase }

func (l *linkNode) Attr() vfs.Attr {
	a := l.attrOf(unix.S_IFLNK, 0o777)
	if p := l.kernel.Process(l.target.process); p != nil && l.entry.rights != nil {
		a.Mode = unix.S_IFLNK | l.entry.rights(p, l.fd)
	}
	return a
}

func (l *linkNode) Readlink(c *vfs.Ctx) (string, unix.Errno) {
	if errno := l.mayExamine(c); errno != 0 {
		return "", errno
	}
	r := l.newRequest(c)
	if l.entry.link != nil {
		return l.entry.link(r)
	}
	d := l.entry.follow(r)
	if d == nil {
		return "", unix.ENOENT
	}
	return d.PathFrom(c.Root), 0
}

// magicNode is a link that leads to an object whatever its text is.
type magicNode struct{ linkNode }

func (m *magicNode) Follow(c *vfs.Ctx) (*vfs.Dentry, unix.Errno) {
	if errno := m.mayExamine(c); errno != 0 {
		return nil, errno
	}
	d := m.entry.follow(m.newRequest(c))
	if d == nil {
		return nil, unix.ENOENT
	}
	return d, 0
}
