package vfs

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/kmem"
)

// FS is the guest's file system: a tree of names and its objects.
type FS struct {
	// Clock stamps changes and Entropy is the source of /dev/random. The kernel sets
	// both before the first operation.
	Clock   Clock
	Entropy Entropy

	// NumbersByName has the numbers of inodes not depend on the order in which processes that do
	// not belong together make and find files: those of the host's files are hashes of their
	// names, and others are numbered separately while Serving is set, which the kernel sets when it acts for its service.
	NumbersByName, Serving bool

	ram       *mem.RAM
	memory    *kmem.Account
	host      *Host
	root      *Dentry
	startNS   int64 // the time before Clock is set
	lastIno   uint64
	servedIno uint64 // while Serving
	inodes    uint64 // made by the guest
	maxInodes uint64
	linked    map[hostID]*Inode // of host files with several names
	cached    []*Inode          // with unchanged pages of host files, oldest first
	touched   map[*lower]bool   // whose content this copy of the file system has read
	mounts    []MountInfo
	unseen    map[string]bool // see Unseen
	writable  []*Dentry       // tops of rw mounts, in the order of mounting
	readOnly  []*Dentry       // tops of other mounts
	waits     []lockWait      // for record locks, oldest first
	locks     int             // record locks of all files
	anonInode *Inode
	queues    *Dentry // the folder of message queues
	terminals *Dentry // the folder of slaves of pseudo-terminals

	// Leases are the settings of leases.
	Leases LeaseSettings

	nodeWatches map[nodeKey][]Watch // of made-up objects
	lastCookie  uint32              // of a rename, for watches

	// The settings fs.protected_hardlinks and fs.protected_symlinks, see proc(5).
	// Both are on, as Debian has them.
	protectedHardlinks, protectedSymlinks bool
}

// Root is the root folder of the tree.
func (fs *FS) Root() *Dentry { return fs.root }

// Memory is the account of the kernel's own objects.
func (fs *FS) Memory() *kmem.Account { return fs.memory }

// currentTime is the time for a stamp.
func (fs *FS) currentTime() int64 {
	if fs.Clock == nil {
		return fs.startNS
	}
	return fs.Clock.RealtimeNS()
}

// Close closes all handles of the host. It fails if a host file that the guest
// could see was noticed to change during the run.
func (fs *FS) Close() error { return fs.host.Close() }

// removeCached removes i from the list of inodes with pages of host files.
func (fs *FS) removeCached(i *Inode) {
	if at := slices.Index(fs.cached, i); at >= 0 {
		fs.cached = slices.Delete(fs.cached, at, at+1)
	}
}

// Reclaim frees pages of host files that can be read again, and returns how many: all
// pages of files that are neither open nor mapped, and the unchanged ones of others. It
// is called when guest memory is exhausted (mm.Reclaimer).
func (fs *FS) Reclaim() int {
	freed := 0
	fs.cached = slices.DeleteFunc(fs.cached, func(i *Inode) bool {
		if i.dataChanged || i.opens > 0 || i.content.Refs() > 1 {
			freed += i.content.DropClean()
			return false
		}
		freed += i.content.Resident()
		i.content.Unref()
		i.content = nil
		return true
	})
	return freed
}
