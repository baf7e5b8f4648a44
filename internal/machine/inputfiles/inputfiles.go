// Package inputfiles keeps the files of the host that a run reads in its trace, so that the run can be repeated
// when they are others or gone.
//
// The stream trace.Files has them, in pieces, as the guest has read them. A file is taken from there only if that of
// the host has another hash than the run's summary says, and only if the stored one has that hash. The folders in
// which the files are, and symbolic links, must be as they were; a replay is compared with the recorded run anyway.
package inputfiles

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// pieceSize is the number of bytes of one event.
const pieceSize = 128 << 10

// Store appends the files that were read to a trace. One that cannot be read any more is left out.
func Store(w *trace.Writer, at event.Stamp, files *vfs.FS) {
	to := w.Stream(trace.Files, 0)
	buffer := make([]byte, pieceSize)
	files.EachRead(func(f vfs.StoredFile, size int64, read func([]byte, int64) bool) bool {
		for off := int64(0); off == 0 || off < size; off += pieceSize {
			part := buffer[:min(pieceSize, size-off)]
			if len(part) > 0 && !read(part, off) {
				break
			}
			trace.Put(to, &event.File{
				Stamp: at, Name: f.Path, Size: uint64(size), Mode: f.Mode, UID: f.UID, GID: f.GID, Links: f.Links,
				Accessed: f.Accessed, Modified: f.Modified, Changed: f.Changed, Data: part,
			})
		}
		return true
	})
}

// Inputs are the files that take the place of those of the host in a replay.
type Inputs struct {
	Files []vfs.StoredFile
	stdin []byte // in place of the host's file of standard input, unless nil
}

// Find compares files of the host with their hashes, and returns the files that are others or cannot be read as the trace
// has them. Standard input has the path stdin on the host; if that is empty, it was no file. If the trace does not have a file,
// Find returns its path, with the error of reading it; if the folder of a stored one is gone, that of the folder.
func Find(r *trace.Reader, list []vfs.Input, stdin string) (found Inputs, missing string, err error) {
	wanted := map[string]string{}
	onHost := func(in vfs.Input) string {
		if in.Path == vfs.StdinPath {
			return stdin
		}
		return in.Path
	}
	for _, in := range list {
		path := onHost(in)
		if path == "" {
			continue
		}
		sum, err := hashFile(path)
		switch {
		case err == nil && sum == in.SHA256:
		case !r.Has(trace.Files):
			return Inputs{}, path, err
		default:
			if folder := filepath.Dir(path); in.Path != vfs.StdinPath && !isFolder(folder) {
				return Inputs{}, folder, err
			}
			wanted[in.Path] = in.SHA256
		}
	}
	if err := found.load(r, wanted); err != nil {
		return Inputs{}, "", err
	}
	for _, in := range list {
		if _, left := wanted[in.Path]; left {
			return Inputs{}, onHost(in), nil
		}
	}
	return found, "", nil
}

// OpenStdin opens standard input that was a file of the host, at the position that it had. The file has a name for people.
func (f *Inputs) OpenStdin(path, name string, at int64) (*os.File, error) {
	fd, err := 0, error(nil)
	if f.stdin == nil {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	} else {
		fd, err = unix.MemfdCreate(vfs.StdinPath, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	if f.stdin != nil {
		_, err = file.Write(f.stdin)
	}
	if err == nil {
		_, err = file.Seek(at, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// load reads the wanted files, and removes those from the list that have their hashes.
func (f *Inputs) load(r *trace.Reader, wanted map[string]string) error {
	var now vfs.StoredFile
	for e, err := range trace.Get[event.File](r, trace.Key{Kind: trace.Files}, trace.Where{}) {
		if err != nil {
			return err
		}
		isFolder := e.Mode&unix.S_IFMT == unix.S_IFDIR
		if !isFolder && len(wanted) == 0 {
			break // folders come first
		}
		if !isFolder && wanted[e.Name] == "" {
			continue
		}
		if now.Path != e.Name {
			now = vfs.StoredFile{
				Path: e.Name, Mode: e.Mode, UID: e.UID, GID: e.GID, Links: e.Links,
				Accessed: e.Accessed, Modified: e.Modified, Changed: e.Changed,
			}
		}
		now.Data = append(now.Data, e.Data...)
		if uint64(len(now.Data)) != e.Size {
			continue
		}
		if isFolder {
			f.Files = append(f.Files, now)
			continue
		}
		if sum := sha256.Sum256(now.Data); hex.EncodeToString(sum[:]) == wanted[e.Name] {
			delete(wanted, e.Name)
			if now.Path == vfs.StdinPath {
				f.stdin = append([]byte{}, now.Data...) // not nil
			} else {
				f.Files = append(f.Files, now)
			}
		}
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", errors.Unwrap(err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
