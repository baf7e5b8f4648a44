package vfs

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Dentry is a name in the tree, by which an open file, a working directory or a running
// program was found. Renaming moves it, so that its path is always current.
type Dentry struct {
	parent  *Dentry // nil for the root of the tree and for objects without a name
	name    string
	inode   *Inode
	gone    bool   // removed from its folder
	mounted bool   // a mount point: can be neither removed nor renamed
	opens   int    // descriptions that were opened by the name
	label   string // shown as the path of an object without a name
}

// Inode returns the object of the name.
func (d *Dentry) Inode() *Inode { return d.inode }

// countOpens counts n descriptions that were opened by the name, which keep its folder
// in memory.
func (d *Dentry) countOpens(n int) {
	d.opens += n
	if d.parent != nil {
		d.parent.inode.pins += n
		d.parent.inode.release()
	}
}

// Name is the last component of the path; "" for the root.
func (d *Dentry) Name() string { return d.name }

// Parent is the folder the name is in; the root is its own.
func (d *Dentry) Parent() *Dentry {
	if d.parent == nil {
		return d
	}
	return d.parent
}

// Deleted reports whether the name, or one above it, was removed.
func (d *Dentry) Deleted() bool {
	for ; d != nil; d = d.parent {
		if d.gone {
			return true
		}
	}
	return false
}

// Path is the absolute guest path, as /proc/PID/fd shows it: with " (deleted)" at its
// end when the name is removed, and "pipe:[3]" or the like for an object without a
// name. See PathFrom for a task in a changed root.
func (d *Dentry) Path() string { return d.PathFrom(nil) }

// PathFrom is the path as a task sees it whose root is the given one.
func (d *Dentry) PathFrom(root *Dentry) string {
	if d.label != "" {
		return d.label
	}
	path := d.joinNames(root)
	if d.Deleted() {
		path += " (deleted)"
	}
	return path
}

// joinNames joins the names below root, or below the tree's root.
func (d *Dentry) joinNames(root *Dentry) string {
	var names []string
	for at := d; at != root && at.parent != nil; at = at.parent {
		names = append(names, at.name)
	}
	var b strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		b.WriteByte('/')
		b.WriteString(names[i])
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// isBelow reports whether d is top or lies under it.
func (d *Dentry) isBelow(top *Dentry) bool {
	for ; d != nil; d = d.parent {
		if d == top {
			return true
		}
	}
	return false
}

// depthOf is the number of folders above d.
func (d *Dentry) depthOf() int {
	n := 0
	for ; d.parent != nil; d = d.parent {
		n++
	}
	return n
}

// Getcwd returns the path of a working directory; see getcwd(2). ENOENT: it was
// removed. A directory outside the task's root has "(unreachable)" before its
// path.
func (fs *FS) Getcwd(c *Ctx) (string, unix.Errno) {
	if c.Cwd.Deleted() {
		return "", unix.ENOENT
	}
	if !c.Cwd.isBelow(c.Root) {
		return "(unreachable)" + c.Cwd.joinNames(nil), 0
	}
	return c.Cwd.joinNames(c.Root), 0
}

// anonDentry makes a name for an object that has none, such as a pipe; label is shown
// by /proc/PID/fd.
func anonDentry(i *Inode, label string) *Dentry { return &Dentry{inode: i, label: label} }
