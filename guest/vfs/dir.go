package vfs

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// maxDepth bounds how deep folders nest, so that no walk over the tree can exhaust the
// host's stack. Linux has no such bound.
const maxDepth = 2048

// directory is the names in a folder: entries, and under them the names of the lower
// node that no entry replaces or hides.
type directory struct {
	entries map[string]*Dentry // nil: the lower node's name is removed
	loaded  bool               // every name of the lower node is in entries
	sorted  *nameList          // nil: not known
	dead    bool               // removed: nothing can be added
}

// nameList is the names of a folder at some time. It never changes, so that open
// descriptions can keep it.
type nameList struct{ items []Dirent }

// SharedInSnapshot marks that a list never changes.
func (*nameList) SharedInSnapshot() {}

// Dirent is an entry of a folder as getdents64 returns it.
type Dirent struct {
	Name string
	Ino  uint64
	Type uint32 // unix.S_IFREG and so on
}

// findChild finds a name in a folder. ENOENT: it is absent.
func (fs *FS) findChild(c *Ctx, dir *Dentry, name string) (*Dentry, unix.Errno) {
	i := dir.inode
	if i.node != nil {
		return fs.nodeChild(c, dir, name)
	}
	if d, ok := i.dir.entries[name]; ok {
		if d == nil {
			return nil, unix.ENOENT
		}
		return d, 0
	}
	if i.lower == nil || i.dir.loaded {
		return nil, unix.ENOENT
	}
	n, errno := i.lower.findChild(name)
	if errno != 0 {
		return nil, errno
	}
	if n == nil {
		return nil, unix.ENOENT
	}
	return fs.addLower(dir, name, n), 0
}

// addLower makes the entry of a lower node.
func (fs *FS) addLower(dir *Dentry, name string, n *lower) *Dentry {
	d := &Dentry{parent: dir, name: name, inode: fs.lowerInode(n), mounted: n.mount != nil}
	dir.inode.dir.entries[name] = d
	return d
}

// loadLower makes the entries of all names of the lower node.
func (fs *FS) loadLower(dir *Dentry) unix.Errno {
	i := dir.inode
	if i.dir.loaded || i.lower == nil {
		return 0
	}
	names, errno := i.lower.listNames()
	if errno != 0 {
		return errno
	}
	for _, name := range names {
		if _, ok := i.dir.entries[name]; ok {
			continue
		}
		n, errno := i.lower.findChild(name)
		if errno != 0 {
			return errno
		}
		if n != nil {
			fs.addLower(dir, name, n)
		}
	}
	if !i.lower.synthetic {
		fs.touched[i.lower] = true
	}
	i.dir.loaded, i.dir.sorted = true, nil
	return 0
}

// listNames returns all entries of a folder, sorted by name.
func (fs *FS) listNames(dir *Dentry) (*nameList, unix.Errno) {
	if errno := fs.loadLower(dir); errno != 0 {
		return nil, errno
	}
	d := dir.inode.dir
	if d.sorted == nil {
		items := make([]Dirent, 0, len(d.entries))
		for _, name := range slices.Sorted(maps.Keys(d.entries)) {
			if e := d.entries[name]; e != nil {
				items = append(items, Dirent{Name: name, Ino: e.inode.ino, Type: e.inode.Type()})
			}
		}
		d.sorted = &nameList{items}
	}
	return d.sorted, 0
}

// isEmpty reports whether a folder has no names.
func (fs *FS) isEmpty(dir *Dentry) (bool, unix.Errno) {
	l, errno := fs.listNames(dir)
	if errno != 0 {
		return false, errno
	}
	return len(l.items) == 0, 0
}

// insertName puts d into a folder under a name, and replaces the old entry.
func (fs *FS) insertName(dir, d *Dentry, name string) {
	opens := d.opens
	d.countOpens(-opens)
	d.parent, d.name, d.gone = dir, name, false
	d.countOpens(opens)
	dir.inode.dir.entries[name] = d
	dir.inode.dir.sorted = nil
	if d.inode.IsDir() && dir.inode.nlink > 1 { // 1: the host does not count
		dir.inode.nlink++
	}
	fs.touchFolder(dir.inode)
}

// removeName removes d from its folder.
func (fs *FS) removeName(d *Dentry) {
	dir := d.parent.inode
	if dir.lower != nil && dir.lower.hasChild(d.name) {
		dir.dir.entries[d.name] = nil
	} else {
		delete(dir.dir.entries, d.name)
	}
	dir.dir.sorted = nil
	d.gone = true
	if d.inode.IsDir() && dir.nlink > 2 {
		dir.nlink--
	}
	fs.touchFolder(dir)
}

// hasChild reports whether a lower folder has a name. A name that was seen once is
// known, so the host cannot fail here.
func (n *lower) hasChild(name string) bool {
	c, errno := n.findChild(name)
	return errno == 0 && c != nil
}

// touchFolder stamps a change of names.
func (fs *FS) touchFolder(i *Inode) {
	i.mtime = fs.currentTime()
	i.ctime = i.mtime
}
