package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

const (
	moduleRoot = "../.."
	modulePath = "github.com/heddle-dmt/heddle"
)

// layers lists, for each layer, the other layers that it may import. A layer is
// everything under a folder but for layers of its own inside. Tests may import more.
var layers = map[string][]string{
	"emu/arch":         {},
	"guest/linux":      {},
	"internal":         {},
	"recorder/event":   {"emu/arch"},
	"emu":              {"emu/floats", "emu/memlog", "emu/arch", "internal"},
	"emu/floats":       {"internal"},
	"emu/memlog":       {"emu", "emu/arch"},
	"memmodel":         {"emu", "emu/memlog", "emu/arch", "recorder/event", "internal"},
	"guest":            {"memmodel", "emu", "emu/memlog", "guest/linux", "emu/arch", "recorder/event", "internal"},
	"sched":            {"recorder/event", "guest/linux", "emu/arch", "internal"},
	"recorder":         {"guest", "memmodel", "emu", "emu/memlog", "guest/linux", "emu/arch", "recorder/event", "internal"},
	"analyses":         {"recorder", "recorder/event", "guest/linux", "emu/floats", "emu/memlog", "emu/arch", "internal"},
	"internal/machine": {"recorder", "sched", "guest", "memmodel", "emu", "emu/memlog", "guest/linux", "emu/arch", "recorder/event", "internal"},
	".":                {"experiments", "internal/machine", "analyses", "recorder", "sched", "guest", "memmodel", "emu", "emu/memlog", "guest/linux", "emu/arch", "recorder/event", "internal"},
	"internal/job":     {"internal/machine", "recorder", "sched", "guest", "memmodel", "emu", "emu/memlog", "guest/linux", "emu/arch", "recorder/event", "internal"},
	"experiments":      {"internal/job", "internal/machine", "analyses", "recorder", "sched", "guest", "memmodel", "emu", "emu/memlog", "guest/linux", "emu/arch", "recorder/event", "internal"},
	"cmd":              {"experiments", "internal/job", "internal/machine", "analyses", "recorder", "sched", "guest", "memmodel", "emu", "emu/memlog", "guest/linux", "emu/arch", "recorder/event", "internal"},
	"paper-scripts":    {"experiments", "internal/machine", "analyses", "recorder", "sched", "guest", "memmodel", "emu", "emu/memlog", "guest/linux", "emu/arch", "recorder/event", "internal"},
}

// unsafeAllowed are the packages that may use cgo or unsafe: the bindings, those that
// give the linker a flag for Z3, the copier that reflects into unexported fields, and the
// kernel's view of ABI structs as bytes.
var unsafeAllowed = []string{"emu/direct", "emu/floats", "emu/insn", "emu/mem", "emu/memlog", "emu/stores", "emu/uc", "analyses/h3/solve", "analyses/races", "analyses/smt", "analyses/vex", "internal/deepcopy", "internal/dynlib", "internal/libipt", "internal/stdfds", "internal/zydis", "guest/kernel", "recorder/memtrace"}

// deterministic are the layers in which nothing may read the host's clock,
// randomness or environment.
var deterministic = []string{"emu", "emu/arch", "memmodel", "guest", "sched", "recorder", "recorder/event", "analyses"}

// leaks are the functions and packages of the standard library through which
// the host would reach a run.
var leaks = map[string][]string{
	"time":         {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"os":           {"Getpid", "Getppid", "Hostname", "Getenv", "LookupEnv", "Environ"},
	"math/rand":    nil, // the whole package
	"crypto/rand":  nil,
	"hash/maphash": nil,
}

type goFile struct {
	path string // relative to the module root, slashes
	dir  string
	test bool
	file *ast.File
	set  *token.FileSet
}

func goFiles(t *testing.T) []goFile {
	t.Helper()
	var all []goFile
	err := filepath.WalkDir(moduleRoot, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != moduleRoot && skipped(path, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		rel, err := filepath.Rel(moduleRoot, path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all = append(all, goFile{
			path: filepath.ToSlash(rel), dir: filepath.ToSlash(filepath.Dir(rel)),
			test: strings.HasSuffix(path, "_test.go"), file: file, set: set,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// skipped reports folders that are no packages of this module.
func skipped(path, name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

// layerOf returns the layer of a package folder: the longest key of layers that is the
// folder or one above it.
func layerOf(dir string) string {
	for d := dir; d != "."; d = path.Dir(d) {
		if _, known := layers[d]; known {
			return d
		}
	}
	return dir
}

func TestImportEdges(t *testing.T) {
	for _, f := range goFiles(t) {
		from := layerOf(f.dir)
		allowed, known := layers[from]
		if !known {
			t.Errorf("%s: %q is not a layer; add it to the table with its imports", f.path, from)
			continue
		}
		if f.test {
			continue
		}
		for _, path := range imported(f) {
			rel, inModule := strings.CutPrefix(path, modulePath)
			if !inModule {
				continue
			}
			to := layerOf(cmp.Or(strings.TrimPrefix(rel, "/"), "."))
			if to != from && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s: layer %q may import only %v", f.path, path, from, allowed)
			}
		}
	}
}

func TestUnsafeCodeIsConfined(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, path := range imported(f) {
			if (path == "C" || path == "unsafe") && !f.test && !slices.Contains(unsafeAllowed, f.dir) {
				t.Errorf("%s imports %q, which only %v may", f.path, path, unsafeAllowed)
			}
		}
	}
}

func TestDeterministicLayersDoNotReadTheHost(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test || !slices.Contains(deterministic, layerOf(f.dir)) || !slices.Contains(packageFiles(t, f.dir), filepath.Base(f.path)) {
			continue
		}
		for _, spec := range f.file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if functions, leaky := leaks[path]; leaky && functions == nil {
				t.Errorf("%s imports %s in a deterministic layer", f.path, path)
			}
		}
		for _, use := range usesOf(f, leaks) {
			t.Errorf("%s in a deterministic layer", use)
		}
	}
}

// usesOf lists where a file uses functions of packages: "FILE:LINE uses PACKAGE.FUNCTION".
func usesOf(f goFile, functions map[string][]string) (uses []string) {
	names := map[string][]string{} // by local name of a package
	for _, spec := range f.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		local := filepath.Base(path)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if list, ok := functions[path]; ok {
			names[local] = list
		}
	}
	ast.Inspect(f.file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && slices.Contains(names[pkg.Name], selector.Sel.Name) {
			uses = append(uses, fmt.Sprintf("%s:%d uses %s.%s", f.path, f.set.Position(n.Pos()).Line, pkg.Name, selector.Sel.Name))
		}
		return true
	})
	return uses
}

// inPlace are the functions that write a file under its final name.
var inPlace = map[string][]string{"os": {"Create", "WriteFile", "OpenFile", "Rename"}}

// writesInPlace are the packages that may use them: the one that does so safely, and
// those whose files are in temporary folders or in a cache of their own.
var writesInPlace = []string{
	"internal/outfile", "internal/gcc", "internal/gcctest", "internal/bench", "guest/programs/install",
	"paper-scripts/frost", "paper-scripts/h3", "paper-scripts/peregrine", "paper-scripts/tern",
}

func TestOutputFilesAreWrittenBeside(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test || slices.Contains(writesInPlace, f.dir) {
			continue
		}
		for _, use := range usesOf(f, inPlace) {
			t.Errorf("%s: an output file is written by internal/outfile, a temporary one made by os.CreateTemp", use)
		}
	}
}

// harnesses are packages under a deterministic layer that only tests use: they
// build and run programs on the host.
var harnesses = []string{"guest/programs/conformance"}

// packageFiles returns the non-test files of the package that are built for
// this host, or none for a test harness.
func packageFiles(t *testing.T, dir string) []string {
	t.Helper()
	if slices.Contains(harnesses, dir) {
		return nil
	}
	pkg, err := build.ImportDir(filepath.Join(moduleRoot, dir), 0)
	if err != nil {
		t.Fatal(err)
	}
	return append(pkg.GoFiles, pkg.CgoFiles...)
}

func TestEveryPackageHasADoc(t *testing.T) {
	docs := map[string]int{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		docs[f.dir] += 0
		if f.file.Doc != nil {
			docs[f.dir]++
		}
	}
	var dirs []string
	for dir := range docs {
		dirs = append(dirs, dir)
	}
	sort.Strings(dirs)
	for _, dir := range dirs {
		if docs[dir] != 1 {
			t.Errorf("package in %s has %d doc comments, want 1", dir, docs[dir])
		}
	}
}

func imported(f goFile) []string {
	var paths []string
	for _, spec := range f.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, path)
	}
	return paths
}

// repositoryFiles lists the files of the repository, by their paths from its root.
func repositoryFiles(t *testing.T) []string {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = moduleRoot
	out, err := list.Output()
	if err != nil {
		t.Skipf("the files are not in a repository of git: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// largestFile is the size in bytes of the largest file that a repository of sources has.
const largestFile = 1 << 20

// TestNoLargeFiles: build products are not in the repository.
func TestNoLargeFiles(t *testing.T) {
	for _, name := range repositoryFiles(t) {
		if info, err := os.Stat(filepath.Join(moduleRoot, name)); err == nil && info.Size() > largestFile {
			t.Errorf("%s has %d bytes, more than %d", name, info.Size(), largestFile)
		}
	}
}
