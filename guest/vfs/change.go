package vfs

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// changeKind is how a name differs from the lower tree.
type changeKind uint8

const (
	changeNew  changeKind = iota // nothing, or something else, is below
	changeData                   // the same file with other content
	changeMeta                   // the same object with other mode, owner or times
	changeGone                   // the lower name is removed
)

// change is a difference between the guest's tree and the lower tree.
type change struct {
	kind  changeKind
	at    *place
	path  string // where it is to be made, once a writer knows
	inode *Inode // nil for changeGone
	lower *lower // what is below the name, or nil
}

// place is a name on the way from the top of a difference. Paths are made of it
// at need: those of folders that nest deep are together far larger than the
// tree.
type place struct {
	up   *place // nil: name is the path of the top
	name string
}

// path is the guest path.
func (p *place) path() string {
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

// differ collects changes.
type differ struct {
	fs      *FS
	changes []change
	stopAt  func(d *Dentry) bool // mounts that are looked at by themselves
	all     bool                 // look at names that the guest never saw, too
}

// diff lists the changes below top, sorted by path: a folder comes before what
// is in it.
func (fs *FS) diff(top *Dentry, stopAt func(*Dentry) bool) ([]change, unix.Errno) {
	d := differ{fs: fs, stopAt: stopAt}
	errno := d.object(top, &place{name: top.Path()}, top.inode.lower)
	return d.changes, errno
}

// diffLinks is diff, and finds the names that the guest never looked at of files
// that it changed under another name.
func (fs *FS) diffLinks(top *Dentry, stopAt func(*Dentry) bool) ([]change, unix.Errno) {
	d := differ{fs: fs, stopAt: stopAt}
	for _, i := range fs.linked {
		d.all = d.all || i.dataChanged || i.metaChanged
	}
	errno := d.object(top, &place{name: top.Path()}, top.inode.lower)
	return d.changes, errno
}

func (d *differ) add(kind changeKind, at *place, i *Inode, below *lower) {
	d.changes = append(d.changes, change{kind: kind, at: at, inode: i, lower: below})
}

// same tells whether an inode is the object that is below its name.
func (i *Inode) same(below *lower) bool {
	if i.lower == nil || below == nil {
		return false
	}
	if i.lower == below {
		return true
	}
	return !i.IsDir() && i.lower.attr.nlink > 1 && i.lower.attr.id == below.attr.id
}

// object compares an object with what is below its name.
func (d *differ) object(e *Dentry, at *place, below *lower) unix.Errno {
	i := e.inode
	switch {
	case !i.same(below):
		d.add(changeNew, at, i, below)
	case i.dataChanged:
		d.add(changeData, at, i, below)
	case i.metaChanged:
		d.add(changeMeta, at, i, below)
	}
	if i.dir == nil {
		return 0
	}
	return d.folder(e, at, i.same(below))
}

// folder compares the names in a folder. In one that is where it was, names
// that were never looked at are what they were.
func (d *differ) folder(e *Dentry, in *place, inPlace bool) unix.Errno {
	if !inPlace || d.all {
		if errno := d.fs.load(e); errno != 0 {
			return errno
		}
	}
	entries := e.inode.dir.entries
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		child := entries[name]
		var below *lower
		if inPlace {
			var errno unix.Errno
			if below, errno = e.inode.lower.child(name); errno != 0 {
				return errno
			}
		}
		at := &place{in, name}
		switch {
		case child == nil:
			d.add(changeGone, at, nil, below)
		case child.inode.super != superOverlay || d.stopAt(child):
		default:
			if errno := d.object(child, at, below); errno != 0 {
				return errno
			}
		}
	}
	return 0
}

// overlayChanges lists the changes outside of writable mounts: those of the root
// and of each other mount.
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

// mountBelow tells of a name whether another mount than top begins there.
func mountBelow(top *Dentry) func(*Dentry) bool {
	return func(d *Dentry) bool { return d.mounted && d != top }
}

// Left lists the guest paths of the files that were made or changed outside of
// writable mounts, sorted: what is lost with the run, or kept by Export.
// Folders, sockets and removed files do not count.
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

// shorten leaves out the middle of a path that is longer than any system call
// takes.
func shorten(path string) string {
	if len(path) <= maxPath {
		return path
	}
	return path[:maxPath/2-2] + "[..]" + path[len(path)-maxPath/2+2:]
}
