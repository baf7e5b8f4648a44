package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// cflags are the compiler's arguments for every program. Warnings are shown
// when a program does not compile; they are not made errors, because each
// compiler version warns about other things.
var cflags = []string{"-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-Wall", "-Wextra"}

// staleAfter is the age at which a build of another version of a program's
// source is removed from the cache.
const staleAfter = 24 * time.Hour

// Build compiles and links the program, or finds the build that an earlier
// call left in the user's cache folder, and returns the path of the
// executable. Several processes may build at the same time.
func (p Program) Build(static bool) (string, error) {
	if static && p.DynamicOnly != "" {
		return "", fmt.Errorf("build %s: no static form: %s", p.Name, p.DynamicOnly)
	}
	if static {
		return p.build(p.Name+"-static", "-static")
	}
	return p.build(p.Name)
}

// BuildPlugin does the same for the shared library of a program that has one.
func (p Program) BuildPlugin() (string, error) {
	if !p.Plugin {
		return "", fmt.Errorf("build %s: it has no plugin", p.Name)
	}
	return p.build(p.Name+"-plugin", "-DPLUGIN", "-shared", "-fPIC")
}

func (p Program) build(target string, mode ...string) (string, error) {
	args := append(append([]string{}, cflags...), mode...)
	args = append(args, "-x", "c", p.Name+".c", "-x", "none")
	args = append(args, p.Link...)
	key, err := p.key(args)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", p.Name, err)
	}
	dir, err := cacheDir()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", p.Name, err)
	}
	out := filepath.Join(dir, target+"-"+key)
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	if err := p.compile(args, dir, out); err != nil {
		return "", fmt.Errorf("build %s: %w", p.Name, err)
	}
	removeStale(dir, target, out)
	return out, nil
}

// compile runs gcc in a folder of its own and moves the result into place in
// one step, so that nobody sees half an executable.
func (p Program) compile(args []string, dir, out string) error {
	tmp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	src, err := fs.Sub(sources, "src")
	if err != nil {
		return err
	}
	for _, name := range p.files() {
		text, err := fs.ReadFile(src, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tmp, name), text, 0o644); err != nil {
			return err
		}
	}
	cmd := exec.Command("gcc", append([]string{"-o", "out"}, args...)...)
	cmd.Dir = tmp
	if msg, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc %s: %w\n%s", strings.Join(args, " "), err, msg)
	}
	return os.Rename(filepath.Join(tmp, "out"), out)
}

// files are the sources that the program is made of: its own and all headers.
func (p Program) files() []string {
	headers, err := fs.Glob(sources, "src/*.h")
	if err != nil {
		panic("bug: " + err.Error())
	}
	names := []string{p.Name + ".c"}
	for _, h := range headers {
		names = append(names, filepath.Base(h))
	}
	return names
}

// key names a build by everything that goes into it: sources, arguments,
// compiler and C library.
func (p Program) key(args []string) (string, error) {
	tools, err := toolchain()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%q\n", tools, args)
	for _, name := range p.files() {
		text, err := fs.ReadFile(sources, "src/"+name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", name, len(text))
		if _, err := io.Copy(h, bytes.NewReader(text)); err != nil {
			return "", err
		}
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

// cacheDir is the folder that keeps builds. Where the user has no cache folder
// it is one in the folder for temporary files.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err == nil {
		dir := filepath.Join(base, "heddle-conformance")
		if os.MkdirAll(dir, 0o755) == nil {
			return dir, nil
		}
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("heddle-conformance-%d", os.Getuid()))
	return dir, os.MkdirAll(dir, 0o755)
}

// removeStale deletes old builds of the same target. That one of them cannot
// be deleted costs disk space only.
func removeStale(dir, target, keep string) {
	builds, err := filepath.Glob(filepath.Join(dir, target+"-????????????"))
	if err != nil {
		panic("bug: " + err.Error())
	}
	for _, b := range builds {
		info, err := os.Stat(b)
		if err == nil && b != keep && time.Since(info.ModTime()) > staleAfter {
			_ = os.Remove(b)
		}
	}
}
