package vfs

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// changeKind is the kind of difference between a name and the lower tree.
type changeKind uint8

const (
	changeNew  changeKind = iota // the lower tree has nothing, or another object, under the name
	changeData                   // the same file with other content
	changeMeta                   // the same object with other mode, owner or times
	changeGone                   // the lower name is removed
)

// change is a difference between the guest's tree and the lower tree.
type change struct {
	kind  changeKind
	at    *treePath
	path  string // the path to write to, once a writer has determined it
	inode *Inode // nil for changeGone
	lower *lower // the lower node of the name, or nil
}

// treePath is a name on the path from the top of a difference. Paths are made from it
// when they are needed: those of deeply nested folders are together far larger than the
// tree.
type treePath struct {
	up   *treePath // nil: name is the path of the top
	name string
}

// path is the guest path.
func (p *treePath) path() string {
	var names []string
	for ; p.up != nil; p = p.up {
		names = append(names, p.name)
	}
	names = append(names, strings.TrimSuffix(p.name, "/"))
	slices.Reverse(names)
	if path := strings.Join(names, "/"); path != "" {
		return path
	}
	return "/"
}

// treeComparer collects changes.
type treeComparer struct {
	fs      *FS
	changes []change
	stopAt  func(d *Dentry) bool // mounts that are compared separately
	all     bool                 // compare names that the guest never saw, too
}

// diff lists the changes below top, sorted by path: a folder precedes its contents.
func (fs *FS) diff(top *Dentry, stopAt func(*Dentry) bool) ([]change, unix.Errno) {
	d := treeComparer{fs: fs, stopAt: stopAt}
	errno := d.compareObject(top, &treePath{name: top.Path()}, top.inode.lower)
	return d.changes, errno
}

// diffLinks is diff that also finds names, never looked up by the guest, of files that
// it changed under another name.
func (fs *FS) diffLinks(top *Dentry, stopAt func(*Dentry) bool) ([]change, unix.Errno) {
	d := treeComparer{fs: fs, stopAt: stopAt}
	for _, i := range fs.linked {
		d.all = d.all || i.dataChanged || i.metaChanged
	}
	errno := d.compareObject(top, &treePath{name: top.Path()}, top.inode.lower)
	return d.changes, errno
}

func (d *treeComparer) add(kind changeKind, at *treePath, i *Inode, below *lower) {
	d.changes = append(d.changes, change{kind: kind, at: at, inode: i, lower: below})
}

// isUnreplaced reports whether an inode is the object that the lower tree has under its
// name.
func (i *Inode) isUnreplaced(below *lower) bool {
	if i.lower == nil || below == nil {
		return false
	}
	if i.lower == below {
		return true
	}
	return !i.IsDir() && i.lower.attr.nlink > 1 && i.lower.attr.id == below.attr.id
}

// compareObject compares an object with the lower node of its name.
func (d *treeComparer) compareObject(e *Dentry, at *treePath, below *lower) unix.Errno {
	i := e.inode
	switch {
	case !i.isUnreplaced(below):
		d.add(changeNew, at, i, below)
	case i.dataChanged:
		d.add(changeData, at, i, below)
	case i.metaChanged:
		d.add(changeMeta, at, i, below)
	}
	if i.dir == nil {
		return 0
	}
	return d.compareFolder(e, at, i.isUnreplaced(below))
}

// compareFolder compares the names in a folder. In a folder that was not moved, names
// that were never looked up are unchanged.
func (d *treeComparer) compareFolder(e *Dentry, in *treePath, inPlace bool) unix.Errno {
	if !inPlace || d.all {
		if errno := d.fs.loadLower(e); errno != 0 {
			return errno
		}
	}
	entries := e.inode.dir.entries
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		child := entries[name]
		var below *lower
		if inPlace {
			var errno unix.Errno
			if below, errno = e.inode.lower.findChild(name); errno != 0 {
				return errno
			}
		}
		at := &treePath{in, name}
		switch {
		case child == nil:
			d.add(changeGone, at, nil, below)
		case child.inode.super != superOverlay || d.stopAt(child):
		default:
			if errno := d.compareObject(child, at, below); errno != 0 {
				return errno
			}
		}
	}
	return 0
}

// overlayChanges lists the changes outside of writable mounts: in the root and in each
// other mount.
func (fs *FS) overlayChanges() ([]change, unix.Errno) {
	tops := fs.readOnly
	if !slices.Contains(fs.writable, fs.root) {
		tops = slices.Concat([]*Dentry{fs.root}, tops)
	}
	var all []change
	for _, top := range tops {
		changes, errno := fs.diff(top, mountBelow(top))
		if errno != 0 {
			return nil, errno
		}
		all = append(all, changes...)
	}
	return all, 0
}

// mountBelow returns a function that reports whether another mount than top begins at a
// name.
func mountBelow(top *Dentry) func(*Dentry) bool {
	return func(d *Dentry) bool { return d.mounted && d != top }
}

// Left lists the guest paths of the files that were made or changed outside of writable
// mounts, sorted: the files that are lost with the run, or kept by Export. Folders,
// sockets and removed files do not count.
func (fs *FS) Left() ([]string, error) {
	changes, errno := fs.overlayChanges()
	if errno != 0 {
		return nil, errno
	}
	var left []string
	for _, c := range changes {
		if c.inode != nil && !c.inode.IsDir() && c.inode.Type() != unix.S_IFSOCK {
			left = append(left, shorten(c.at.path()))
		}
	}
	slices.Sort(left)
	return left, nil
}

// shorten omits the middle of a path that is longer than any system call accepts.
func shorten(path string) string {
	if len(path) <= maxPath {
		return path
	}
	return path[:maxPath/2-2] + "[..]" + path[len(path)-maxPath/2+2:]
}
