package vfs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// removeTree removes a name and, if it is a folder, its contents, without following
// links.
func removeTree(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if err != unix.EISDIR && err != unix.EPERM {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = removeContents(fd)
	_ = unix.Close(fd)
	if err != nil {
		return err
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}

// removeContents empties a folder.
func removeContents(fd int) error {
	for {
		if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
			return err
		}
		buf := make([]byte, 1<<14)
		n, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return err
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if err := removeTree(fd, name); err != nil {
				return err
			}
		}
	}
}

// chmodAt sets permissions without following a link.
func chmodAt(dir int, name string, mode uint32) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	// Before Linux 6.6 nothing else changes the mode of an O_PATH handle.
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode)
}
