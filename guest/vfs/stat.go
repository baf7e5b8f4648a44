package vfs

import (
	"golang.org/x/sys/unix"
)

// blockSize is st_blksize, and the size that folders show.
const blockSize = 4096

// fastLink is the longest text of a symbolic link that needs no block of its
// own, as in ext4.
const fastLink = 59

// blockCount is the number of 512-byte blocks in use. Files of the host count as if they
// had no holes, since the host's use of blocks may change by itself.
func (i *Inode) blockCount() int64 {
	if i.node != nil {
		return 0
	}
	switch i.Type() {
	case unix.S_IFREG:
		if i.lower == nil {
			if i.content == nil {
				return 0
			}
			return int64(i.content.Resident()) * (blockSize / 512)
		}
		return (i.Size() + blockSize - 1) / blockSize * (blockSize / 512)
	case unix.S_IFDIR:
		return blockSize / 512
	case unix.S_IFLNK:
		if i.Size() > fastLink {
			return blockSize / 512
		}
	}
	return 0
}

// Stat returns the attributes of stat(2).
func (i *Inode) Stat() unix.Stat_t {
	return unix.Stat_t{
		Dev: i.super.Dev, Ino: i.ino, Nlink: uint64(i.nlink), Mode: i.mode, Uid: i.uid, Gid: i.gid,
		Rdev: i.rdev, Size: i.Size(), Blksize: blockSize, Blocks: i.blockCount(),
		Atim: unix.NsecToTimespec(i.atime), Mtim: unix.NsecToTimespec(i.mtime), Ctim: unix.NsecToTimespec(i.ctime),
	}
}

// Statx returns the attributes of statx(2) for the mask STATX_BASIC_STATS|STATX_BTIME.
func (i *Inode) Statx() unix.Statx_t {
	s := unix.Statx_t{
		Mask: unix.STATX_BASIC_STATS, Blksize: blockSize, Nlink: i.nlink, Uid: i.uid, Gid: i.gid,
		Mode: uint16(i.mode), Ino: i.ino, Size: uint64(i.Size()), Blocks: uint64(i.blockCount()),
		Atime: statxTime(i.atime), Mtime: statxTime(i.mtime), Ctime: statxTime(i.ctime), Btime: statxTime(i.btime),
		Rdev_major: unix.Major(i.rdev), Rdev_minor: unix.Minor(i.rdev),
		Dev_major: unix.Major(i.super.Dev), Dev_minor: unix.Minor(i.super.Dev),
	}
	if i.node == nil {
		s.Mask |= unix.STATX_BTIME
	}
	return s
}

func statxTime(ns int64) unix.StatxTimestamp {
	t := unix.NsecToTimespec(ns)
	return unix.StatxTimestamp{Sec: t.Sec, Nsec: uint32(t.Nsec)}
}

// Statfs returns the result of statfs(2) for the file system of an inode: the overlay
// and its like have the guest's memory for space.
func (fs *FS) Statfs(i *Inode) unix.Statfs_t {
	s := unix.Statfs_t{
		Type: i.super.Magic, Bsize: blockSize, Frsize: blockSize, Namelen: maxName,
		Fsid:  unix.Fsid{Val: [2]int32{int32(i.super.Dev), 0}},
		Flags: unix.ST_RELATIME | 0x20, // ST_VALID
	}
	if i.node == nil {
		s.Blocks = fs.ram.Limit()
		s.Bfree = fs.ram.Limit() - fs.ram.Used()
		s.Bavail = s.Bfree
		s.Files = fs.maxInodes
		s.Ffree = fs.maxInodes - min(fs.inodes, fs.maxInodes)
	}
	return s
}

// Access implements access(2): mask is a set of MayRead, MayWrite and MayExec, or 0 for
// existence. effective is AT_EACCESS; otherwise the real ids count.
func (c *Ctx) Access(i *Inode, mask uint32, effective bool) unix.Errno {
	cred := c.Cred
	if !effective {
		cred.FSUID, cred.FSGID = cred.UID, cred.GID
		if cred.SecureBits&SecureNoSetuidFixup == 0 {
			if cred.Effective = 0; cred.UID == 0 {
				cred.Effective = cred.Permitted
			}
		}
	}
	if mask&MayWrite != 0 && i.super.ReadOnly && (i.IsDir() || i.IsRegular() || i.IsSymlink()) {
		return unix.EROFS
	}
	return cred.mayAccess(i, mask)
}
