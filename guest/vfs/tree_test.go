package vfs

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// hostTree describes a folder of the host.
func hostTree(t interface{ Fatal(...any) }, root string) string {
	var b strings.Builder
	first := map[uint64]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFSOCK {
			return nil // sockets are not written back
		}
		name := strings.TrimPrefix(path, root)
		fmt.Fprintf(&b, "%s %s", name, statText(st))
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if st.Nlink > 1 && first[st.Ino] == "" {
				first[st.Ino] = name
			}
			fmt.Fprintf(&b, " as %s %.20q %x", first[st.Ino], data, sha256.Sum224(data))
		case unix.S_IFLNK:
			text, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " -> %s", text)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
