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
	t := treeCopy{c: c, to: n}
	t.copyTree(fs.root)
	n.root, n.queues, n.terminals = t.copyOf(fs.root), t.copyOf(fs.queues), t.copyOf(fs.terminals)
	n.memory = deepcopy.Copy(c, fs.memory)
	n.Clock, n.Entropy = deepcopy.Copy(c, fs.Clock), deepcopy.Copy(c, fs.Entropy)
	n.linked = make(map[hostID]*Inode, len(fs.linked))
	for id, i := range fs.linked {
		n.linked[id] = deepcopy.Copy(c, i)
	}
	n.cached, n.touched = deepcopy.Copy(c, fs.cached), maps.Clone(fs.touched)
	n.mounts, n.unseen = slices.Clone(fs.mounts), maps.Clone(fs.unseen)
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
	if i.dir != nil {
		n.dir = i.dir.copyEmpty()
		for name := range i.dir.entries { // a folder out of the tree is empty
			n.dir.entries[name] = nil
		}
	}
	fillInode(c, i, n)
	return n
}

// treeCopy copies all names from the root on, and their objects.
type treeCopy struct {
	c       *deepcopy.Copier
	to      *FS
	names   []copied[*Dentry] // each after its parent
	objects []copied[*Inode]
}

type copied[T any] struct{ old, made T }

// copyTree makes the copies of names and objects, so that every reference to an original finds them, and then copies
// what the objects refer to.
func (t *treeCopy) copyTree(root *Dentry) {
	t.copyName(root)
	for at := 0; at < len(t.names); at++ {
		if n := t.names[at]; n.old.inode.dir != nil {
			n.made.inode.dir = t.copyDirectory(n.old.inode.dir)
		}
	}
	for _, n := range t.names {
		n.made.parent = t.copyOf(n.old.parent)
	}
	for _, i := range t.objects {
		fillInode(t.c, i.old, i.made)
	}
}

func (t *treeCopy) copyName(old *Dentry) *Dentry {
	n := new(Dentry)
	*n = *old
	t.c.Made(old, n)
	t.names = append(t.names, copied[*Dentry]{old, n})
	if have, ok := t.c.Have(old.inode); ok {
		n.inode = have.(*Inode)
		return n
	}
	i := new(Inode)
	*i = *old.inode
	i.fs = t.to
	t.c.Made(old.inode, i)
	t.objects = append(t.objects, copied[*Inode]{old.inode, i})
	n.inode = i
	return n
}

// copyOf returns the copy of a name of the tree; nil if it is not a name of the tree.
func (t *treeCopy) copyOf(old *Dentry) *Dentry {
	if have, ok := t.c.Have(old); ok {
		return have.(*Dentry)
	}
	return nil
}

func (t *treeCopy) copyDirectory(old *directory) *directory {
	d := old.copyEmpty()
	for name, e := range old.entries {
		if d.entries[name] = nil; e != nil {
			d.entries[name] = t.copyName(e)
		}
	}
	return d
}

// copyEmpty copies the folder without its names.
func (d *directory) copyEmpty() *directory {
	return &directory{loaded: d.loaded, sorted: d.sorted, dead: d.dead, entries: make(map[string]*Dentry, len(d.entries))}
}

// fillInode copies what an object refers to besides names.
func fillInode(c *deepcopy.Copier, old, i *Inode) {
	if old.content != nil {
		i.content = deepcopy.Copy(c, old.content)
	}
	if old.node != nil {
		i.node = deepcopy.Copy(c, old.node)
	}
	if old.Object != nil {
		i.Object = deepcopy.Copy(c, old.Object)
	}
	if old.watchList != nil {
		i.watchList = deepcopy.Copy(c, old.watchList)
	}
	if l := &old.locks; l.list != nil || l.flocks != nil || l.leases != nil || l.waiters != (wait.Queue{}) {
		i.locks = deepcopy.Copy(c, old.locks)
	}
}
