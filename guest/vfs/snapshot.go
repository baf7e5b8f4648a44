package vfs

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/guest/wait"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// CopyForSnapshot copies the file system. The tree is copied by code of its own: it is
// by far the largest part of the kernel's state, and may be deep.
func (fs *FS) CopyForSnapshot(c *deepcopy.Copier) any {
	n := new(FS)
	*n = *fs
	n.ram = deepcopy.Copy(c, fs.ram)
	c.Made(fs, n)
	t := treeCopy{c: c, from: fs, to: n, dentries: map[*Dentry]*Dentry{}, inodes: map[*Inode]*Inode{}}
	t.makeShells()
	t.fillShells()
	n.root, n.queues, n.terminals = t.dentries[fs.root], t.dentries[fs.queues], t.dentries[fs.terminals]
	n.memory = deepcopy.Copy(c, fs.memory)
	n.Clock, n.Entropy = deepcopy.Copy(c, fs.Clock), deepcopy.Copy(c, fs.Entropy)
	n.linked = make(map[hostID]*Inode, len(fs.linked))
	for id, i := range fs.linked {
		n.linked[id] = deepcopy.Copy(c, i)
	}
	n.cached, n.touched = deepcopy.Copy(c, fs.cached), maps.Clone(fs.touched)
	n.mounts = slices.Clone(fs.mounts)
	n.writable, n.readOnly = deepcopy.Copy(c, fs.writable), deepcopy.Copy(c, fs.readOnly)
	n.waits = deepcopy.Copy(c, fs.waits)
	n.anonInode = deepcopy.Copy(c, fs.anonInode)
	n.nodeWatches = deepcopy.Copy(c, fs.nodeWatches)
	return n
}

// CopyForSnapshot copies a name. Names of the tree are copied with the file system,
// whichever object refers to them first.
func (d *Dentry) CopyForSnapshot(c *deepcopy.Copier) any {
	_ = deepcopy.Copy(c, d.inode.fs)
	if have, ok := c.Have(d); ok {
		return have
	}
	n := new(Dentry)
	*n = *d
	c.Made(d, n)
	n.parent, n.inode = deepcopy.Copy(c, d.parent), deepcopy.Copy(c, d.inode)
	return n
}

// CopyForSnapshot copies an object, likewise.
func (i *Inode) CopyForSnapshot(c *deepcopy.Copier) any {
	fs := deepcopy.Copy(c, i.fs)
	if have, ok := c.Have(i); ok {
		return have
	}
	n := new(Inode)
	*n = *i
	n.fs = fs
	c.Made(i, n)
	t := treeCopy{c: c}
	t.fillInode(i, n) // a folder out of the tree is empty
	return n
}

// treeCopy copies all names from the root on, and their objects.
type treeCopy struct {
	c        *deepcopy.Copier
	from, to *FS
	dentries map[*Dentry]*Dentry
	inodes   map[*Inode]*Inode
	names    []*Dentry // of the original, each after its parent
	objects  []*Inode  // of the original
}

// makeShells makes the copies, still with pointers into the original, so that every
// reference to the original finds them.
func (t *treeCopy) makeShells() {
	t.makeShell(t.from.root)
	for at := 0; at < len(t.names); at++ {
		dir := t.names[at].inode.dir
		if dir == nil {
			continue
		}
		for _, d := range dir.entries {
			if d != nil {
				t.makeShell(d)
			}
		}
	}
}

func (t *treeCopy) makeShell(d *Dentry) {
	n := new(Dentry)
	*n = *d
	t.c.Made(d, n)
	t.dentries[d] = n
	t.names = append(t.names, d)
	if t.inodes[d.inode] == nil {
		i := new(Inode)
		*i = *d.inode
		i.fs = t.to
		t.c.Made(d.inode, i)
		t.inodes[d.inode] = i
		t.objects = append(t.objects, d.inode)
	}
}

// fillShells replaces the pointers.
func (t *treeCopy) fillShells() {
	for _, old := range t.names {
		n := t.dentries[old]
		n.parent, n.inode = t.dentries[old.parent], t.inodes[old.inode]
	}
	for _, old := range t.objects {
		t.fillInode(old, t.inodes[old])
	}
}

func (t *treeCopy) fillInode(old, i *Inode) {
	if old.dir != nil {
		i.dir = t.copyDirectory(old.dir)
	}
	if old.content != nil {
		i.content = deepcopy.Copy(t.c, old.content)
	}
	if old.node != nil {
		i.node = deepcopy.Copy(t.c, old.node)
	}
	if old.Object != nil {
		i.Object = deepcopy.Copy(t.c, old.Object)
	}
	if old.watchList != nil {
		i.watchList = deepcopy.Copy(t.c, old.watchList)
	}
	if l := &old.locks; l.list != nil || l.flocks != nil || l.leases != nil || l.waiters != (wait.Queue{}) {
		i.locks = deepcopy.Copy(t.c, old.locks)
	}
}

func (t *treeCopy) copyDirectory(old *directory) *directory {
	d := &directory{loaded: old.loaded, sorted: old.sorted, dead: old.dead, entries: make(map[string]*Dentry, len(old.entries))}
	for name, e := range old.entries {
		d.entries[name] = t.dentries[e] // nil stays nil
	}
	return d
}
