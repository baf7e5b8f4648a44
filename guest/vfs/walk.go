package vfs

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of path_resolution(7).
const (
	maxPath  = unix.PathMax - 1 // bytes, without the terminating zero
	maxName  = 255              // bytes of a component
	maxLinks = 40               // symbolic links in one resolution
)

// lastKind is the kind of the last component of a path; only names can be created or
// removed.
type lastKind uint8

const (
	lastName lastKind = iota
	lastRoot
	lastDot
	lastDotDot
)

// target is the object of a path: a name in a folder, which exists or not.
type target struct {
	dir   *Dentry // the folder; for other kinds than names the object itself
	name  string
	kind  lastKind
	slash bool       // the path ends in slashes: it must mean a folder
	d     *Dentry    // nil if the name does not exist
	errno unix.Errno // the reason why the name could not be looked up, if it could not
}

// followMode is whether the symbolic link at the end of a path is followed.
type followMode uint8

const (
	followNever followMode = iota // for creating and removing names
	followSlash                   // if slashes follow it
	followAlways
	followCreate // always, for a file that may be made: it cannot end in slashes
)

// pathWalker is one path resolution.
type pathWalker struct {
	fs    *FS
	c     *Ctx
	at    *Dentry
	links int
}

// startAt begins at the root for absolute paths, else at the given folder, or the
// working directory if that is nil.
func (w *pathWalker) startAt(from *Dentry, path string) unix.Errno {
	switch {
	case path == "":
		return unix.ENOENT
	case path[0] == '/':
		w.at = w.c.Root
	case from == nil:
		w.at = w.c.Cwd
	default:
		w.at = from
	}
	return 0
}

// resolveParent resolves all but the last component.
func (w *pathWalker) resolveParent(path string) (target, unix.Errno) {
	rest := strings.TrimLeft(path, "/")
	if rest == "" {
		return target{dir: w.at, kind: lastRoot, d: w.at, slash: true}, 0
	}
	for {
		name, after, more := strings.Cut(rest, "/")
		rest = strings.TrimLeft(after, "/")
		if errno := w.maySearch(); errno != 0 {
			return target{}, errno
		}
		if rest == "" {
			return target{dir: w.at, name: name, kind: lastKindOf(name), slash: more}, 0
		}
		if errno := w.stepTo(name, true); errno != 0 {
			return target{}, errno
		}
	}
}

func lastKindOf(name string) lastKind {
	switch name {
	case ".":
		return lastDot
	case "..":
		return lastDotDot
	}
	return lastName
}

// maySearch checks that names may be looked up in the folder reached.
func (w *pathWalker) maySearch() unix.Errno {
	if !w.at.inode.IsDir() {
		return unix.ENOTDIR
	}
	return w.c.Cred.mayAccess(w.at.inode, MayExec)
}

// stepTo moves to a name in the current folder, through a symbolic link if follow is set.
func (w *pathWalker) stepTo(name string, follow bool) unix.Errno {
	switch lastKindOf(name) {
	case lastDot:
		return 0
	case lastDotDot:
		w.stepUp()
		return 0
	}
	if len(name) > maxName {
		return unix.ENAMETOOLONG
	}
	d, errno := w.fs.findChild(w.c, w.at, name)
	if errno != 0 {
		if errno == unix.ENOENT {
			w.fs.noteAbsent(w.at, name)
		}
		return errno
	}
	if follow && d.inode.IsSymlink() {
		return w.followLink(d)
	}
	w.at = d
	return 0
}

// stepUp moves to the parent folder; the task's root has none.
func (w *pathWalker) stepUp() {
	if w.at != w.c.Root && w.at.parent != nil {
		w.at = w.at.parent
	}
}

// followLink continues at the target of a symbolic link.
func (w *pathWalker) followLink(link *Dentry) unix.Errno {
	if w.links++; w.links > maxLinks {
		return unix.ELOOP
	}
	if m, ok := link.inode.node.(MagicNode); ok {
		d, errno := m.Follow(w.c)
		if errno == 0 {
			w.at = d
		}
		return errno
	}
	text, errno := link.inode.linkText(w.c)
	if errno != 0 {
		return errno
	}
	w.at = link.parent
	if errno := w.startAt(w.at, text); errno != 0 {
		return errno
	}
	return w.resolveAll(text)
}

// resolveAll resolves a whole path, following the last component too.
func (w *pathWalker) resolveAll(path string) unix.Errno {
	t, errno := w.resolveParent(path)
	if errno != 0 {
		return errno
	}
	if t.kind != lastRoot {
		if errno := w.stepTo(t.name, true); errno != 0 {
			return errno
		}
	}
	if t.slash && !w.at.inode.IsDir() {
		return unix.ENOTDIR
	}
	return 0
}

// findTarget resolves a path to a name that need not exist. If symbolic links at its end are
// followed, it is the name of the last one's target.
func (fs *FS) findTarget(c *Ctx, from *Dentry, path string, how followMode) (target, unix.Errno) {
	if len(path) > maxPath {
		return target{}, unix.ENAMETOOLONG
	}
	w := pathWalker{fs: fs, c: c}
	if errno := w.startAt(from, path); errno != 0 {
		return target{}, errno
	}
	return w.findTarget(path, how)
}

func (w *pathWalker) findTarget(path string, how followMode) (target, unix.Errno) {
	for {
		t, errno := w.resolveParent(path)
		if errno != 0 || t.kind == lastRoot {
			return t, errno
		}
		if how == followCreate && t.slash && t.kind == lastName {
			return t, unix.EISDIR
		}
		switch errno := w.stepTo(t.name, false); {
		case errno == unix.ENOENT:
			return t, 0
		case errno != 0 && how == followNever:
			t.errno = errno
			return t, 0
		case errno != 0:
			return t, errno
		}
		t.d = w.at
		if !w.at.inode.IsSymlink() || how == followNever || how == followSlash && !t.slash {
			return t, 0
		}
		next, ended, errno := w.followLast(&t)
		if errno != 0 || ended {
			return t, errno
		}
		path = next
	}
}

// followLast follows the link at the end of a path: to the text that is to be resolved
// next, or, for links that lead to an object itself, to the end.
func (w *pathWalker) followLast(t *target) (next string, ended bool, errno unix.Errno) {
	link := t.d
	if w.fs.protectedSymlinks && !w.c.Cred.mayFollow(link) {
		return "", true, unix.EACCES
	}
	if _, ok := link.inode.node.(MagicNode); ok {
		if errno := w.followLink(link); errno != 0 {
			return "", true, errno
		}
		t.d, t.dir, t.kind = w.at, w.at, lastRoot
		return "", true, 0
	}
	if w.links++; w.links > maxLinks {
		return "", true, unix.ELOOP
	}
	text, errno := link.inode.linkText(w.c)
	if errno != 0 {
		return "", true, errno
	}
	if t.slash {
		text += "/" // a path that must be a folder must still be one after the link
	}
	if errno := w.startAt(link.parent, text); errno != 0 {
		return "", true, errno
	}
	return text, false, 0
}

// Lookup finds the object at a path. from is the start of relative paths, nil for the
// working directory. Without follow a symbolic link at the end is returned itself,
// unless slashes follow it.
func (fs *FS) Lookup(c *Ctx, from *Dentry, path string, follow bool) (*Dentry, unix.Errno) {
	how := followSlash
	if follow {
		how = followAlways
	}
	t, errno := fs.findTarget(c, from, path, how)
	if errno != 0 {
		return nil, errno
	}
	return t.existingObject()
}

// existingObject returns the object at a target. ENOENT: it is absent. ENOTDIR: the path
// demands a folder and the object is not one.
func (t *target) existingObject() (*Dentry, unix.Errno) {
	switch {
	case t.d == nil:
		return nil, unix.ENOENT
	case t.slash && !t.d.inode.IsDir():
		return nil, unix.ENOTDIR
	}
	return t.d, 0
}

// linkText returns the text of a symbolic link.
func (i *Inode) linkText(c *Ctx) (string, unix.Errno) {
	switch n := i.node.(type) {
	case nil:
	case LinkNode:
		return n.Readlink(c)
	default:
		return "", unix.EINVAL
	}
	if i.lower != nil {
		return i.lower.linkText()
	}
	return i.target, 0
}

// Readlink returns the text of the symbolic link at a path, see readlinkat(2);
// an empty path means from itself.
func (fs *FS) Readlink(c *Ctx, from *Dentry, path string) (string, unix.Errno) {
	d := from
	if path != "" {
		var errno unix.Errno
		if d, errno = fs.Lookup(c, from, path, false); errno != 0 {
			return "", errno
		}
	}
	switch {
	case d == nil:
		return "", unix.ENOENT
	case !d.inode.IsSymlink() && path == "":
		return "", unix.ENOENT
	case !d.inode.IsSymlink():
		return "", unix.EINVAL
	}
	return d.inode.linkText(c)
}
