package programs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// staleAfter is how much older than a new build another build of the same
// variant must be to be removed from the cache.
const staleAfter = 24 * time.Hour

// Variant says how a program is compiled.
type Variant struct {
	Form Form
	// Optimize is the level after -O, 0 or 2; the sanitizer always has 1.
	Optimize int
	Static   bool
	// Debug adds debug information. Symbols are always there.
	Debug bool
	// Delays adds the pauses at the places that make the bug show natively.
	Delays bool
	// Sanitize compiles with gcc's thread sanitizer.
	Sanitize bool
	// Count makes the program print how many synchronization operations it
	// did, on standard error.
	Count bool
}

// Variants are the eight ways in which `make programs` builds each form.
func Variants(form Form) []Variant {
	var all []Variant
	for _, optimize := range []int{0, 2} {
		for _, static := range []bool{false, true} {
			for _, debug := range []bool{false, true} {
				all = append(all, Variant{Form: form, Optimize: optimize, Static: static, Debug: debug})
			}
		}
	}
	return all
}

// Folder is the name of the folder in which `make programs` puts the variant:
// the optimization, static or dynamic, and g for debug information.
func (v Variant) Folder() string {
	name := fmt.Sprintf("O%d-dynamic", v.Optimize)
	if v.Static {
		name = fmt.Sprintf("O%d-static", v.Optimize)
	}
	if v.Debug {
		name += "-g"
	}
	return name
}

// File is the name of the program's executable in that folder.
func (v Variant) File(p Program) string {
	if v.Form == Buggy {
		return p.Name + "-buggy"
	}
	return p.Name
}

// label names the variant in the cache.
func (v Variant) label() string {
	name := string(v.Form) + "-" + v.Folder()
	if v.Delays {
		name += "-delays"
	}
	if v.Sanitize {
		name += "-tsan"
	}
	if v.Count {
		name += "-count"
	}
	return name
}

// flags are the compiler's arguments before the source.
func (v Variant) flags() []string {
	args := []string{
		"-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror=implicit-function-declaration",
		"-pthread", "-Icommon", fmt.Sprintf("-O%d", v.Optimize),
	}
	if v.Form == Buggy {
		args = append(args, "-DBUGGY")
	}
	if v.Delays {
		args = append(args, "-DDELAYS")
	}
	if v.Count {
		args = append(args, "-DCOUNT")
	}
	if v.Debug || v.Sanitize {
		args = append(args, "-g")
	}
	if v.Sanitize {
		args = append(args, "-O1", "-fsanitize=thread")
	}
	if v.Static {
		args = append(args, "-static")
	}
	return args
}

// Build compiles and links a variant, or finds the build that an earlier call
// left in the user's cache folder, and returns the path of the executable.
// Several processes may build at the same time.
func (p Program) Build(v Variant) (string, error) {
	if !p.Has(v.Form) {
		return "", fmt.Errorf("build %s: it has no %s form", p.Name, v.Form)
	}
	args := append(v.flags(), path.Join(p.Folder, p.Name+".c"))
	args = append(append(args, p.Link...), "-lm")
	out, err := p.build(v.label(), args)
	if err != nil {
		return "", fmt.Errorf("build %s %s: %w", p.Name, v.label(), err)
	}
	return out, nil
}

func (p Program) build(label string, args []string) (string, error) {
	files, err := p.files()
	if err != nil {
		return "", err
	}
	key, err := key(args, files)
	if err != nil {
		return "", err
	}
	dir, err := cacheDir(p.Name)
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, label+"-"+key, p.Name)
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	if err := compile(dir, out, args, files); err != nil {
		return "", err
	}
	return out, removeStale(dir, label, filepath.Dir(out))
}

// file is a source with its path below the suite's folder.
type file struct {
	path string
	text []byte
}

// files are the sources that the program is made of: its own and all headers.
func (p Program) files() ([]file, error) {
	var all []file
	for _, pattern := range []string{"common/*.h", p.Folder + "/*.c"} {
		names, err := fs.Glob(sources, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := fs.ReadFile(sources, name)
			if err != nil {
				return nil, err
			}
			all = append(all, file{name, text})
		}
	}
	return all, nil
}

// compile runs gcc in a folder of its own and moves the result into place in
// one step, so that nobody sees half an executable.
func compile(dir, out string, args []string, files []file) error {
	tmp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for _, f := range files {
		name := filepath.Join(tmp, "src", f.path)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.text, 0o644); err != nil {
			return err
		}
	}
	result := filepath.Join(tmp, "result")
	if err := os.Mkdir(result, 0o755); err != nil {
		return err
	}
	src := filepath.Join(tmp, "src")
	// Debug information must not tell in which folder it was compiled.
	cmd := exec.Command("gcc", append([]string{
		"-o", filepath.Join(result, filepath.Base(out)), "-ffile-prefix-map=" + src + "=.",
	}, args...)...)
	cmd.Dir = src
	if msg, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc %s: %w\n%s", strings.Join(args, " "), err, msg)
	}
	// Another process may have put the same build there meanwhile.
	err = os.Rename(result, filepath.Dir(out))
	if _, there := os.Stat(out); there == nil {
		return nil
	}
	return err
}

// key names a build by everything that goes into it: sources, arguments,
// compiler and C library.
func key(args []string, files []file) (string, error) {
	tools, err := toolchain()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%q\n", tools, args)
	for _, f := range files {
		fmt.Fprintf(h, "%s %d\n%s", f.path, len(f.text), f.text)
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

// cacheDir is the folder that keeps a program's builds. Where the user has no
// cache folder it is one in the folder for temporary files.
func cacheDir(program string) (string, error) {
	if base, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(base, "heddle-programs", program)
		if os.MkdirAll(dir, 0o755) == nil {
			return dir, nil
		}
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("heddle-programs-%d", os.Getuid()), program)
	return dir, os.MkdirAll(dir, 0o755)
}

// removeStale deletes old builds of the same variant.
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
