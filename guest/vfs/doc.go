// Package vfs is the guest's file system: one tree of names in which read-only folders
// of the host lie under an in-memory overlay, with open file descriptions, record locks
// and standard streams. It has no knowledge of processes, descriptors or blocking:
// every operation ends at once, with EAGAIN where Linux would wait, and the kernel does
// the waiting.
//
// The main types: FS is the file system; Dentry is a name in the tree, Inode the object
// of the name, File an open file description, FileImpl the object that a description
// acts on. Ctx is the caller. The operations follow the man pages of section 2 and
// path_resolution(7), errors and their precedence included.
//
// The initial content is a tree of lower nodes, which is read from the host when it is
// needed and never changes. An inode that has a lower node takes from it everything
// that the guest did not change. A directory's changes are entries that replace or hide
// lower ones.
//
// Invariants:
//
//  1. No symbolic link is ever resolved by the host: its folders are opened
//     component by component with O_NOFOLLOW, links are resolved in the guest's
//     tree.
//  2. Before Commit and Export nothing of the host is written, and they write
//     only below rw mounts and the export folder.
//  3. All state is plain data for package deepcopy; handles of the host live in
//     Host, which all copies of a file system share.
//  4. Nothing depends on the order of a map, on the host's clock or on the
//     host's inode numbers, except that hard links are recognised by them.
//  5. A dentry of a directory is the only one of its inode.
package vfs
