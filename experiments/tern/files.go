package tern

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// programImage reads the program's file, at its addresses in the recorded run.
func programImage(c *machine.Config, path string) (*cfg.Image, error) {
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	file := ProgramFile(c)
	for m, err := range trace.Get[event.Mapping](r, trace.Key{Kind: trace.Mappings}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		if m.Offset == 0 && hostPath(c, m.Name) == file {
			return cfg.OpenImage(file, loadBias(file, uint64(m.Addr)))
		}
	}
	return cfg.OpenImage(file, 0)
}

// loadBias is the difference between a file's addresses in memory and its own, given where
// it is mapped.
func loadBias(file string, at uint64) uint64 {
	f, err := elf.Open(file)
	if err != nil {
		return 0 // OpenImage reports the error
	}
	defer f.Close()
	if f.Type != elf.ET_DYN {
		return 0
	}
	return at
}

// MakeReadOnly prevents a run from changing the host's files.
func MakeReadOnly(c *machine.Config) {
	c.ExportDir = ""
	c.Mounts = slices.Clone(c.Mounts)
	for i := range c.Mounts {
		c.Mounts[i].Writable = false
	}
}

// ProgramFile returns the host's file of the program that a configuration runs, or the
// empty string.
func ProgramFile(c *machine.Config) string {
	name := c.Args[0]
	if strings.Contains(name, "/") {
		return hostPath(c, name)
	}
	for _, v := range c.Env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range strings.Split(list, ":") {
			path := hostPath(c, filepath.Join(dir, name))
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path
			}
		}
	}
	return ""
}

// hostPath returns the host's path of a guest's file.
func hostPath(c *machine.Config, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	for _, m := range slices.Backward(c.Mounts) {
		if path == m.Guest {
			return m.Host
		}
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(m.Guest, "/")+"/"); ok {
			return filepath.Join(m.Host, rest)
		}
	}
	return filepath.Join(c.RootFS, path)
}

// guestPath is the inverse of hostPath. A file that the guest does not see keeps its path.
func guestPath(c *machine.Config, path string) string {
	for _, m := range slices.Backward(c.Mounts) {
		guest := m.Guest
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(m.Host, "/")+"/"); ok {
			guest = filepath.Join(guest, rest)
		} else if path != m.Host {
			continue
		}
		if hostPath(c, guest) == path {
			return guest
		}
	}
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(c.RootFS, "/")); ok {
		return rest
	}
	return path
}

// FileSHA256 returns the SHA-256 of a file, or the empty string if it cannot be read.
func FileSHA256(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}
