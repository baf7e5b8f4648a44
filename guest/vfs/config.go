package vfs

import (
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/kmem"
)

// Clock is the guest's real-time clock. The kernel implements it.
type Clock interface {
	// RealtimeNS is the time in nanoseconds since 1970.
	RealtimeNS() int64
}

// Entropy is the source of /dev/random and /dev/urandom. The kernel implements it.
type Entropy interface {
	Read(p []byte)
}

// Mount makes a folder or file of the host visible at a guest path.
type Mount struct {
	// Host is a path of the host; symbolic links in it are followed.
	Host string
	// Guest is an absolute guest path.
	Guest string
	// Writable makes Commit write the guest's changes back to the host.
	Writable bool
}

// Config describes the part of the host that the guest sees.
type Config struct {
	// RAM holds the contents of files.
	RAM *mem.RAM

	// RootFS is the folder that is the guest's root. Empty means that Paths lists the
	// visible paths.
	RootFS string
	// Paths are absolute paths of the host that the guest sees at the same path,
	// together with the targets of symbolic links among them. Paths that do not exist
	// are omitted. See DefaultPaths.
	Paths []string
	// Mounts are made after Paths; later ones hide earlier ones.
	Mounts []Mount
	// Hidden are paths of the host that the guest does not see, whether they exist
	// or not: files that the run itself writes.
	Hidden []string
	// Stored are files that take the place of those of the host, which may be others or missing, and folders whose names and
	// attributes do. The folders must exist, too.
	Stored []StoredFile
	// Home is made as an empty folder unless it is visible otherwise.
	Home string
	// UID and GID own Home.
	UID, GID uint32

	// FileTimeNS is the time that all host files show, in nanoseconds since
	// 1970, unless HostTimes is set.
	FileTimeNS int64
	// HostTimes shows the host's own times.
	HostTimes bool

	// Memory counts open files; nil: they are not counted.
	Memory *kmem.Account

	// MaxInodes bounds the files, folders and links that the guest makes; 0
	// means half the number of pages of RAM, as tmpfs does.
	MaxInodes uint64
}
