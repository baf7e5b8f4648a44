// Package gcc compiles programs whose sources heddle carries, and keeps the executables
// in the user's cache folder. It says nothing of how a program is compiled: arguments and
// sources are the caller's.
//
// Invariants:
//
//  1. An executable is found again only if its sources, the arguments, the compiler and
//     the C library have not changed.
//  2. Several processes may build the same program at the same time: none sees half of
//     an executable.
package gcc

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// staleAfter is how much older than a new build another build of the same label must be
// to be removed from the cache.
const staleAfter = 24 * time.Hour

// Source is a file that takes part in a build, with its path below the folder in which
// gcc runs.
type Source struct {
	Path string
	Text []byte
}

// Build is one way to compile one program.
type Build struct {
	// Cache is a folder in the user's cache folder, Name the program's folder in there and
	// the executable's name.
	Cache, Name string
	// Label names the build among the program's. Builds of the same label replace each
	// other after a day.
	Label string
	// Args are gcc's, without -o.
	Args    []string
	Sources []Source
}

// Make returns the path of the executable, which it compiles if it is not in the cache.
func (b Build) Make() (string, error) {
	key, err := b.key()
	if err != nil {
		return "", err
	}
	dir, err := cacheDir(b.Cache, b.Name)
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, b.Label+"-"+key, b.Name)
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	if err := b.compile(dir, out); err != nil {
		return "", err
	}
	return out, removeStale(dir, b.Label, filepath.Dir(out))
}

// compile runs gcc in a folder of its own and moves the result into place in one step.
func (b Build) compile(dir, out string) error {
	tmp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	src, result := filepath.Join(tmp, "src"), filepath.Join(tmp, "result")
	if err := b.write(src); err != nil {
		return err
	}
	if err := os.Mkdir(result, 0o755); err != nil {
		return err
	}
	// Debug information must not name the folder in which it was compiled.
	cmd := exec.Command("gcc", append([]string{
		"-o", filepath.Join(result, b.Name), "-ffile-prefix-map=" + src + "=.",
	}, b.Args...)...)
	cmd.Dir = src
	if msg, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc %s: %w\n%s", strings.Join(b.Args, " "), err, msg)
	}
	// Another process may have put the same build there meanwhile.
	err = os.Rename(result, filepath.Dir(out))
	if _, there := os.Stat(out); there == nil {
		return nil
	}
	return err
}

// write puts the sources into a folder.
func (b Build) write(dir string) error {
	for _, s := range b.Sources {
		name := filepath.Join(dir, s.Path)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, s.Text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// key names a build by everything that goes into it: sources, arguments, compiler and C
// library.
func (b Build) key() (string, error) {
	tools, err := toolchain()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%q\n", tools, b.Args)
	for _, s := range b.Sources {
		fmt.Fprintf(h, "%s %d\n%s", s.Path, len(s.Text), s.Text)
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// toolchain describes the installed compiler and C library.
var toolchain = sync.OnceValues(func() (string, error) {
	version, err := exec.Command("gcc", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("gcc --version: %w", err)
	}
	libc, err := exec.Command("gcc", "-print-file-name=libc.a").Output()
	if err != nil {
		return "", fmt.Errorf("gcc -print-file-name=libc.a: %w", err)
	}
	info, err := os.Stat(strings.TrimSpace(string(libc)))
	if err != nil {
		return "", fmt.Errorf("the static C library: %w", err)
	}
	return fmt.Sprintf("%slibc %d %d", version, info.Size(), info.ModTime().Unix()), nil
})

// cacheDir makes a program's folder in a cache. Where the user has no cache folder it is
// one in the folder for temporary files.
func cacheDir(cache, program string) (string, error) {
	if base, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(base, cache, program)
		if os.MkdirAll(dir, 0o755) == nil {
			return dir, nil
		}
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("%s-%d", cache, os.Getuid()), program)
	return dir, os.MkdirAll(dir, 0o755)
}

// removeStale deletes old builds of the same label.
func removeStale(dir, label, keep string) error {
	kept, err := os.Stat(keep)
	if err != nil {
		return err
	}
	builds, err := filepath.Glob(filepath.Join(dir, label+"-????????????"))
	if err != nil {
		panic("bug: " + err.Error())
	}
	for _, b := range builds {
		info, err := os.Stat(b)
		if err == nil && kept.ModTime().Sub(info.ModTime()) > staleAfter {
			// That one cannot be deleted costs disk space only.
			_ = os.RemoveAll(b)
		}
	}
	return nil
}
