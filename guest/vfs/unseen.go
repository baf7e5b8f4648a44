package vfs

import (
	"os"
	"path"
	"slices"
)

// maxUnseen bounds the names that are noted for Unseen.
const maxUnseen = 1000

// noteAbsent notes a name that the guest has not found in a folder that is there only because it leads to visible paths.
func (fs *FS) noteAbsent(dir *Dentry, name string) {
	n := dir.inode.lower
	if n == nil || !n.synthetic || len(fs.unseen) >= maxUnseen {
		return
	}
	if _, removed := dir.inode.dir.entries[name]; !removed {
		fs.unseen[path.Join(dir.Path(), name)] = true
	}
}

// Unseen lists the paths that the guest has looked for and not found although the host has them, since no mount shows them
// (at most 1,000 were noted). It depends on the host, and is for a remark to the user alone.
func (fs *FS) Unseen() []string {
	var paths []string
	for name := range fs.unseen {
		if _, err := os.Lstat(name); err == nil {
			paths = append(paths, name)
		}
	}
	slices.Sort(paths)
	return paths
}
