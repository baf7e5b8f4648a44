package job

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// FindProgram returns the host's file of a program, which is a path or a name in the guest's PATH, and reports whether there is
// one. search is the guest's PATH.
func (o Options) FindProgram(name string) (file, search string, exists bool) {
	if strings.Contains(name, "/") {
		file = filepath.Join(o.RootFS, name)
		return file, "", IsFile(file)
	}
	for _, variable := range o.Config().Env {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			search = value
		}
	}
	for _, dir := range filepath.SplitList(search) {
		if file = filepath.Join(o.RootFS, dir, name); IsFile(file) {
			return file, search, true
		}
	}
	return "", search, false
}

// OnHostPath returns the path of a program whose name is not in the guest's PATH but in that of heddle itself; other names are
// returned as they are.
func (o Options) OnHostPath(name string) string {
	if _, _, exists := o.FindProgram(name); exists || o.RootFS != "" || strings.Contains(name, "/") {
		return name
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return name
	}
	if found, err = filepath.Abs(found); err != nil {
		return name
	}
	return found
}

// IsFile reports whether a path of the host leads to a regular file.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
