package vfs

import "golang.org/x/sys/unix"

// NewPipe makes the inode of a pipe, for both of its descriptions.
func (fs *FS) NewPipe(c *Ctx) *Inode {
	i := fs.newInode(superPipe, unix.S_IFIFO|0o600, c.Cred.FSUID, c.Cred.FSGID)
	i.nlink = 1
	return i
}

// NewSocket makes the inode of a socket.
func (fs *FS) NewSocket(c *Ctx) *Inode {
	i := fs.newInode(superSocket, unix.S_IFSOCK|0o777, c.Cred.FSUID, c.Cred.FSGID)
	i.nlink = 1
	return i
}

// Anon is the one inode of all objects that have no type of their own: eventfd,
// epoll, timerfd, signalfd.
func (fs *FS) Anon() *Inode {
	if fs.anonInode == nil {
		fs.anonInode = fs.newInode(superAnon, 0o600, 0, 0)
		fs.anonInode.nlink = 1
	}
	return fs.anonInode
}
