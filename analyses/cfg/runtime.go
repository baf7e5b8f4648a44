package cfg

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// runtimeLibraries are the names of the files, up to ".so", of the C and C++ run-time libraries
// and of libraries whose functions DefaultModels describe: their code is not analysed with a program.
var runtimeLibraries = []string{
	"ld-linux-x86-64", "libc", "libm", "libmvec", "libpthread", "libdl", "librt", "libutil", "libresolv", "libcrypt", "libanl",
	"libstdc++", "libgcc_s", "libgomp", "libbz2", "libasan", "libtsan",
}

// IsSliced reports whether a file at a host path can be analysed as a part of a program: an ELF file other than those of the
// run-time libraries.
func IsSliced(path string) bool {
	name, _, _ := strings.Cut(filepath.Base(path), ".so")
	if slices.Contains(runtimeLibraries, name) || strings.HasPrefix(name, "libnss_") {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var magic [4]byte
	_, err = file.Read(magic[:])
	return err == nil && bytes.Equal(magic[:], []byte("\x7fELF"))
}
