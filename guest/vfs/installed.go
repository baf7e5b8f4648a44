package vfs

import (
	"bufio"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// installation finds the files of a program that is installed outside of basePaths.
type installation struct {
	dir, home         string
	searched          []string        // folders of LD_LIBRARY_PATH
	programs, objects map[string]bool // those that were examined; objects are programs' and libraries' files without links
	paths             []string
}

// InstalledPaths lists the files and folders of the host that belong to a program outside of the folders that the guest has
// otherwise, and that the guest sees for that reason: the folder above one named bin, sbin or libexec that has the program,
// such as /opt/x for /opt/x/bin/program, but not one that holds folders that the guest has otherwise, such as /usr or home, or
// home/.local; the interpreters of a script and of an ELF program; the folders in which the dynamic linker searches for its
// libraries and theirs (DT_RUNPATH, DT_RPATH, LD_LIBRARY_PATH; ld.so(8)). program is a path of the host or a plain name, for
// which there are none; dir is an absolute path, env the guest's environment as K=V.
func InstalledPaths(program string, env []string, dir, home string) []string {
	if !strings.Contains(program, "/") {
		return nil
	}
	if !filepath.IsAbs(program) {
		program = filepath.Join(dir, program)
	}
	in := installation{dir: dir, home: home, programs: map[string]bool{}, objects: map[string]bool{}}
	for _, setting := range env {
		if value, ok := strings.CutPrefix(setting, "LD_LIBRARY_PATH="); ok {
			in.searched = filepath.SplitList(value)
		}
	}
	in.addProgram(program)
	return in.paths
}

// addProgram adds the folder, the interpreters and the libraries of a program.
func (in *installation) addProgram(program string) {
	if in.programs[program] {
		return
	}
	in.programs[program] = true
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return
	}
	for _, name := range []string{program, real} {
		folder := filepath.Dir(filepath.Clean(name))
		if slices.Contains([]string{"bin", "sbin", "libexec"}, filepath.Base(folder)) {
			in.addFolder(filepath.Dir(folder))
		}
	}
	if interpreter := scriptInterpreter(real); interpreter != "" {
		in.addFile(interpreter)
		in.addProgram(interpreter)
		return
	}
	in.addLibraries(real)
}

// addLibraries adds the interpreter of an ELF file, and the folders with the libraries that it needs and that they need.
func (in *installation) addLibraries(file string) {
	if in.objects[file] {
		return
	}
	in.objects[file] = true
	f, err := elf.Open(file)
	if err != nil {
		return // a damaged program is refused when it is loaded
	}
	defer f.Close()
	if interpreter := elfInterpreter(f); interpreter != "" {
		in.addFile(interpreter)
	}
	folders := slices.Clone(in.searched)
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		values, err := f.DynString(tag)
		if err != nil {
			continue
		}
		for _, value := range values {
			folders = append(folders, filepath.SplitList(value)...)
		}
	}
	origin := strings.NewReplacer("${ORIGIN}", filepath.Dir(file), "$ORIGIN", filepath.Dir(file))
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return
	}
	for _, folder := range folders {
		folder = filepath.Clean(origin.Replace(folder))
		if !filepath.IsAbs(folder) {
			continue
		}
		for _, library := range libraries {
			real, err := filepath.EvalSymlinks(filepath.Join(folder, library))
			if err != nil {
				continue
			}
			in.addFolder(folder)
			in.addLibraries(real)
		}
	}
}

// addFolder adds a folder, but not one that the guest has otherwise, or that holds such a one.
func (in *installation) addFolder(name string) {
	if name != filepath.Join(in.home, ".local") && !holdsGuestFolder(name, "", in.home) {
		in.addFile(name)
	}
}

// addFile adds a file or folder unless the guest has it otherwise.
func (in *installation) addFile(name string) {
	shown := slices.Concat(basePaths, in.paths, []string{in.dir})
	if filepath.IsAbs(name) && !slices.ContainsFunc(shown, func(base string) bool { return isWithin(name, base) }) {
		in.paths = append(in.paths, name)
	}
}

// scriptInterpreter is the path behind the #! with which a script begins, or empty (execve(2)).
func scriptInterpreter(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _, err := bufio.NewReaderSize(f, 256).ReadLine()
	text, isScript := strings.CutPrefix(string(line), "#!")
	words := strings.Fields(text)
	if err != nil || !isScript || len(words) == 0 || !filepath.IsAbs(words[0]) {
		return ""
	}
	return words[0]
}

// elfInterpreter is the path of a program's dynamic linker, or empty.
func elfInterpreter(f *elf.File) string {
	for _, segment := range f.Progs {
		if segment.Type != elf.PT_INTERP || segment.Filesz > 4096 {
			continue
		}
		name := make([]byte, segment.Filesz)
		if _, err := segment.ReadAt(name, 0); err != nil {
			return ""
		}
		return strings.TrimRight(string(name), "\x00")
	}
	return ""
}
