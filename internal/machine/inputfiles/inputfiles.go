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

// Find compares files of the host with their hashes, and returns the files that are others or cannot be read as the trace
// has them. If the trace does not have one, it returns its path, with the error of reading it.
func Find(r *trace.Reader, list []vfs.Input) (stored []vfs.StoredFile, missing string, err error) {
	wanted := map[string]string{}
	for _, in := range list {
		sum, err := hashFile(in.Path)
		switch {
		case err == nil && sum == in.SHA256:
		case !r.Has(trace.Files):
			return nil, in.Path, err
		default:
			wanted[in.Path] = in.SHA256
		}
	}
	if len(wanted) == 0 {
		return nil, "", nil
	}
	if stored, err = load(r, wanted); err != nil {
		return nil, "", err
	}
	for _, in := range list {
		if _, left := wanted[in.Path]; left {
			return nil, in.Path, nil
		}
	}
	return stored, "", nil
}

// load reads the wanted files, and removes those from the list that have their hashes.
func load(r *trace.Reader, wanted map[string]string) (list []vfs.StoredFile, err error) {
	var now vfs.StoredFile
	for e, err := range trace.Get[event.File](r, trace.Key{Kind: trace.Files}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		if wanted[e.Name] == "" {
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
		if sum := sha256.Sum256(now.Data); hex.EncodeToString(sum[:]) == wanted[e.Name] {
			delete(wanted, e.Name)
			list = append(list, now)
		}
	}
	return list, nil
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
