package setup

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const moduleRoot = "../.."

// assumed are the packages that the README asks for, besides those of a bare Debian.
var assumed = []string{"make", "git"}

// noPrograms are words of the tests that are programs of packages, too, but are meant
// otherwise.
var noPrograms = []string{"ab", "bc", "column", "ed", "file", "init", "look", "man", "node", "opt", "reboot", "replace", "shutdown", "time", "view", "write"}

// purposes reads packages.txt. Each purpose has the packages of those above it, too.
func purposes(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("packages.txt")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string][]string{}
	var all []string // of the purposes that others need
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			if len(f) < 3 {
				t.Fatalf("packages.txt: no purpose, package and use: %q", line)
			}
			switch f[0] {
			case "servers", "slurm":
				list[f[0]] = append(list[f[0]], f[1])
			case "deb":
				list[f[0]] = append(append(list[f[0]], list["build"]...), f[1])
			default:
				all = append(all, f[1])
				list[f[0]] = slices.Clone(all)
			}
		}
	}
	for _, purpose := range []string{"servers", "slurm"} {
		list[purpose] = append(list[purpose], all...)
	}
	if names := slices.Sorted(maps.Keys(list)); !slices.Equal(names, []string{"build", "deb", "demo", "servers", "slurm", "test"}) {
		t.Fatalf("packages.txt: purposes %v", names)
	}
	return list
}

// installed is dpkg's list of the packages of this host.
type installed struct {
	depends  map[string][]string // also by the names that a package provides
	provided map[string][]string // the packages with a name
	base     []string            // the packages of a bare Debian
}

var relation = regexp.MustCompile(`[a-z0-9][a-z0-9+.-]+(:any)?( \([^)]*\))?`)

// names lists the packages of a field such as Depends: all alternatives, as the ones that
// are not installed make no difference.
func names(field string) []string {
	var list []string
	for _, word := range relation.FindAllString(field, -1) {
		name, _, _ := strings.Cut(word, " ")
		list = append(list, strings.TrimSuffix(name, ":any"))
	}
	return list
}

func readInstalled(t *testing.T) installed {
	t.Helper()
	format := `${db:Status-Abbrev}\t${Package}\t${Essential}\t${Priority}\t${Provides}\t${Pre-Depends}, ${Depends}\n`
	text, err := exec.Command("dpkg-query", "-W", "-f", format).Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("this host is no Debian")
	}
	if err != nil {
		t.Fatal(err)
	}
	in := installed{map[string][]string{}, map[string][]string{}, nil}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		f := strings.Split(line, "\t")
		if !strings.HasPrefix(f[0], "ii") {
			continue
		}
		in.depends[f[1]] = names(f[5])
		for _, name := range append(names(f[4]), f[1]) {
			in.provided[name] = append(in.provided[name], f[1])
		}
		if f[2] == "yes" || f[3] == "required" {
			in.base = append(in.base, f[1])
		}
	}
	return in
}

// closure is the set of packages of a bare Debian once the packages are installed, without those that they
// merely recommend.
func (in installed) closure(packages []string) map[string]bool {
	has := map[string]bool{}
	var add func(list []string)
	add = func(list []string) {
		for _, name := range list {
			for _, p := range in.provided[name] {
				if !has[p] {
					has[p] = true
					add(in.depends[p])
				}
			}
		}
	}
	add(in.base)
	add(assumed)
	add(packages)
	return has
}

// merged is the name of a file below /usr, where the folders of / have moved.
func merged(file string) string {
	for _, dir := range []string{"/bin/", "/sbin/", "/lib/", "/lib64/"} {
		if strings.HasPrefix(file, dir) {
			return "/usr" + file
		}
	}
	return file
}

// owners finds the packages of files. A file that no package has is missing in the
// result.
func owners(t *testing.T, files []string) map[string][]string {
	t.Helper()
	args := []string{"-S"}
	for _, file := range files {
		// dpkg knows a file by the name in its package.
		args = append(args, merged(file), strings.TrimPrefix(merged(file), "/usr"))
	}
	text, err := exec.Command("dpkg", args...).Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	of := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		packages, file, _ := strings.Cut(line, ": ")
		for _, p := range strings.Split(packages, ", ") {
			name, _, _ := strings.Cut(p, ":")
			of[merged(file)] = append(of[merged(file)], name)
		}
	}
	found := map[string][]string{}
	for _, file := range files {
		if list := of[merged(file)]; list != nil {
			found[file] = list
		}
	}
	return found
}

// uses are files of the host with the places that need them.
type uses map[string]string

// check demands that each file is of a package that a purpose installs.
func (u uses) check(t *testing.T, in installed, purpose string) {
	t.Helper()
	has := in.closure(purposes(t)[purpose])
	// packages.sh installs Go by itself, of Debian or of golang.org.
	goroot := strings.TrimSpace(output(t, "go", "env", "GOROOT")) + "/"
	files := slices.DeleteFunc(slices.Sorted(maps.Keys(u)), func(file string) bool { return strings.HasPrefix(file, goroot) })
	of := owners(t, files)
	for _, file := range files {
		if len(of[file]) == 0 {
			t.Errorf("%s needs %s, which is of no package", u[file], file)
		} else if !slices.ContainsFunc(of[file], func(p string) bool { return has[p] }) {
			t.Errorf("%s needs %s of the package %s, which packages.txt does not have for %q", u[file], file, strings.Join(of[file], " or "), purpose)
		}
	}
}

// goPackage is a package with cgo, as `go list` describes it.
type goPackage struct {
	ImportPath, Dir                     string
	Standard                            bool
	CgoFiles, CFiles                    []string
	CgoCFLAGS, CgoLDFLAGS, CgoPkgConfig []string
}

func listPackages(t *testing.T, args ...string) []goPackage {
	t.Helper()
	fields := "-json=ImportPath,Dir,Standard,CgoFiles,CFiles,CgoCFLAGS,CgoLDFLAGS,CgoPkgConfig"
	text := output(t, "go", append([]string{"list", "-deps", fields}, args...)...)
	var list []goPackage
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var p goPackage
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if len(p.CgoFiles) > 0 {
			list = append(list, p)
		}
	}
	return list
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = moduleRoot
	text, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return string(text)
}

// preamble is the C of a Go file.
func preamble(t *testing.T, file string) string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Doc != nil && len(g.Specs) == 1 && g.Specs[0].(*ast.ImportSpec).Path.Value == `"C"` {
			for _, line := range strings.Split(g.Doc.Text(), "\n") {
				if !strings.HasPrefix(strings.TrimSpace(line), "#cgo") {
					b.WriteString(line + "\n")
				}
			}
		}
	}
	return b.String()
}

// cgoUses adds the headers and libraries that the C of a package uses.
func (u uses) cgoUses(t *testing.T, p goPackage) {
	t.Helper()
	flags := slices.Clone(p.CgoCFLAGS)
	libraries := slices.Clone(p.CgoLDFLAGS)
	for _, name := range p.CgoPkgConfig {
		flags = append(flags, strings.Fields(output(t, "pkg-config", "--cflags", name))...)
		libraries = append(libraries, strings.Fields(output(t, "pkg-config", "--libs", name))...)
		u[program(t, "pkg-config")] = p.ImportPath
		u[strings.TrimSpace(output(t, "pkg-config", "--variable=pcfiledir", name))+"/"+name+".pc"] = p.ImportPath
	}
	var sources []string
	for _, file := range p.CFiles {
		sources = append(sources, filepath.Join(p.Dir, file))
	}
	for _, file := range p.CgoFiles {
		c := filepath.Join(t.TempDir(), "preamble.c")
		if err := os.WriteFile(c, []byte(preamble(t, filepath.Join(p.Dir, file))), 0o600); err != nil {
			t.Fatal(err)
		}
		sources = append(sources, c)
	}
	// -MG lists headers that are not there by their bare names.
	args := slices.Concat([]string{"-M", "-MG", "-I" + p.Dir}, flags, sources)
	for _, word := range strings.Fields(strings.ReplaceAll(output(t, "gcc", args...), "\\\n", " ")) {
		switch {
		case strings.HasPrefix(word, "/usr/") && !strings.HasPrefix(word, "/usr/local/"):
			u[filepath.Clean(word)] = p.ImportPath
		case !strings.HasPrefix(word, "/") && !strings.HasSuffix(word, ":") && word != "_cgo_export.h":
			t.Errorf("%s includes %s, which the compiler does not find", p.ImportPath, word)
		}
	}
	u.libraries(t, libraries, p.ImportPath)
	u[program(t, "gcc")] = p.ImportPath
}

// libraries adds the files that the linker takes for -l flags.
func (u uses) libraries(t *testing.T, flags []string, by string) {
	t.Helper()
	for _, f := range flags {
		if !strings.HasPrefix(f, "-l") {
			continue
		}
		file := libraryFile(t, f, flags)
		if file == "" {
			t.Errorf("%s: the linker finds nothing for %s", by, f)
			continue
		}
		u[file] = by
	}
}

// libraryFile is the file of one -l flag, looked for in the folders of -L flags first.
func libraryFile(t *testing.T, flag string, flags []string) string {
	t.Helper()
	name := strings.TrimPrefix(flag, "-l")
	for _, file := range []string{"lib" + name + ".so", "lib" + name + ".a"} {
		for _, f := range flags {
			if dir, ok := strings.CutPrefix(f, "-L"); ok && exists(dir+"/"+file) {
				return filepath.Clean(dir + "/" + file)
			}
		}
		if path := strings.TrimSpace(output(t, "gcc", "-print-file-name="+file)); exists(path) {
			return filepath.Clean(path)
		}
	}
	return ""
}

func exists(path string) bool { _, err := os.Stat(path); return filepath.IsAbs(path) && err == nil }

// program finds the file of a command, or "" if the host has none.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	// Names such as awk and cc are links that no package has.
	for strings.HasPrefix(path, "/") {
		to, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(to, "/etc/alternatives/") && !strings.HasPrefix(path, "/etc/alternatives/") {
			break
		}
		path = to
	}
	return path
}

// TestBuildPackages: heddle itself can be compiled and linked with the packages for
// `make build`.
func TestBuildPackages(t *testing.T) {
	in := readInstalled(t)
	u := uses{}
	for _, p := range listPackages(t, "./cmd/heddle") {
		u.cgoUses(t, p)
	}
	u.check(t, in, "build")
}

var (
	firstWord = regexp.MustCompile(`command: \[([^,\]]+)`)
	include   = regexp.MustCompile(`(?m)^\s*#\s*include\s*<([^>]+)>`)
	library   = regexp.MustCompile(`^-l[A-Za-z0-9_]+$`)
	word      = regexp.MustCompile(`/?[\w.+-]+(/[\w.+-]+)*`)
)

// TestDemoPackages: `make demo` finds the programs that it runs.
func TestDemoPackages(t *testing.T) {
	in := readInstalled(t)
	text, err := os.ReadFile(moduleRoot + "/configs/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	u := uses{}
	for _, m := range firstWord.FindAllStringSubmatch(string(text), -1) {
		path := program(t, m[1])
		if path == "" {
			t.Errorf("configs/demo.yaml runs %s, which this host does not have", m[1])
			continue
		}
		u[path] = "configs/demo.yaml"
	}
	if len(u) == 0 {
		t.Error("configs/demo.yaml runs nothing")
	}
	u.check(t, in, "demo")
}

// serversTest, those of the folders subjectsTest and serversFiles, and slurmTest need the packages for servers and for Slurm, too, and are left out without
// them.
const (
	serversTest  = moduleRoot + "/internal/e2e/servers_test.go"
	subjectsTest = moduleRoot + "/experiments/servers/"
	serversFiles = moduleRoot + "/configs/servers/"
	slurmTest    = moduleRoot + "/experiments/slurm/slurm_test.go"
)

// moveTo checks the uses of files whose paths begin with a text against the packages for a purpose of their own, and removes it.
func (u uses) moveTo(t *testing.T, in installed, file, purpose string) {
	own := uses{}
	for path, by := range u {
		if strings.HasPrefix(by, file) {
			own[path] = by
			delete(u, path)
		}
	}
	own.check(t, in, purpose)
}

// TestTestPackages: the tests find the libraries that they link with and the programs that
// they run. Which words of a test are programs is not known before it runs: each that
// this host knows as one is taken for one.
func TestTestPackages(t *testing.T) {
	in := readInstalled(t)
	u := uses{}
	for _, p := range listPackages(t, "-test", "./...") {
		if !strings.Contains(p.ImportPath, " [") { // compiled anew for a test, of the same files
			u.cgoUses(t, p)
		}
	}
	w := words{map[string]string{}, map[string]string{}, map[string]string{}}
	err := filepath.WalkDir(moduleRoot, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && path != moduleRoot && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return err
		}
		return w.scan(path)
	})
	if err != nil {
		t.Fatal(err)
	}
	w.use(t, u)
	u.moveTo(t, in, serversTest, "servers")
	u.moveTo(t, in, subjectsTest, "servers")
	u.moveTo(t, in, serversFiles, "servers")
	u.moveTo(t, in, slurmTest, "slurm")
	u.check(t, in, "test")
}

// words are the names in files of the tests and of the guest programs, with a file of each.
type words struct{ commands, headers, libraries map[string]string }

func (w words) scan(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	switch {
	case strings.HasSuffix(path, "_test.go"):
		return w.scanGo(path, text)
	case filepath.Ext(path) == ".c" || filepath.Ext(path) == ".cc":
		w.scanC(path, string(text))
	case filepath.Ext(path) == ".txtar" || filepath.Base(path) == "README.md":
		for _, s := range word.FindAllString(string(text), -1) {
			w.commands[s] = path
		}
	case filepath.Ext(path) == ".yaml":
		for _, m := range firstWord.FindAllStringSubmatch(string(text), -1) {
			w.commands[m[1]] = path
		}
	}
	return nil
}

func (w words) scanGo(path string, text []byte) error {
	f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			s, _ := strconv.Unquote(l.Value)
			w.commands[s] = path
			if library.MatchString(s) {
				w.libraries[s] = path
			}
			w.scanC(path, s)
		}
		return true
	})
	return nil
}

func (w words) scanC(path, text string) {
	for _, m := range include.FindAllStringSubmatch(text, -1) {
		w.headers[m[1]] = path
	}
}

// use adds the files of the words that mean some.
func (w words) use(t *testing.T, u uses) {
	t.Helper()
	programs := uses{}
	for name, by := range w.commands {
		if name == "" || slices.Contains(noPrograms, name) || strings.Contains(name, "/") && !filepath.IsAbs(name) {
			continue
		}
		if path := program(t, name); path != "" {
			programs[path] = by
		}
	}
	for path := range owners(t, slices.Collect(maps.Keys(programs))) {
		u[path] = programs[path] // others were made on this host, such as those of a Go that is no package
	}
	for name, by := range w.libraries {
		if path := libraryFile(t, name, nil); path != "" {
			u[path] = by
		}
	}
	c, cc := includeDirs(t, "c"), includeDirs(t, "c++")
	for name, by := range w.headers {
		dirs := slices.Concat(c, cc) // the second for files that the first do not have
		if filepath.Ext(by) == ".cc" {
			dirs = cc
		}
		for _, dir := range dirs {
			if path := filepath.Join(dir, name); exists(path) {
				u[path] = by
				break
			}
		}
	}
}

// includeDirs are the folders in which the compiler of a language looks for <...>.
func includeDirs(t *testing.T, language string) []string {
	t.Helper()
	text, err := exec.Command("g++", "-E", "-v", "-x", language, "/dev/null").CombinedOutput()
	if err != nil {
		t.Fatalf("g++ -v: %v", err)
	}
	_, dirs, _ := strings.Cut(string(text), "#include <...> search starts here:\n")
	dirs, _, _ = strings.Cut(dirs, "End of search list.")
	return strings.Fields(dirs)
}
