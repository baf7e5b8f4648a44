package tern

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// inputFolders returns the numbers of the arguments that name folders whose files are inputs: all folders but those
// from which the recorded run of a trace loaded code.
func inputFolders(c *machine.Config, path string) ([]int, error) {
	var list []int
	for i, a := range c.Args {
		if info, err := os.Stat(hostPath(c, a)); i > 0 && err == nil && info.IsDir() {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for m, err := range trace.Get[event.Mapping](r, trace.Key{Kind: trace.Mappings}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		file := hostPath(c, m.Name)
		if m.Name == "" || !isELF(file) {
			continue
		}
		list = slices.DeleteFunc(list, func(i int) bool {
			return strings.HasPrefix(file, strings.TrimSuffix(hostPath(c, c.Args[i]), "/")+"/")
		})
	}
	return list, nil
}

// isELF reports whether a file is a program or a library.
func isELF(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && string(magic[:]) == "\x7fELF"
}

// folderTerms returns terms that fix the arguments which name folders, and the names in these (listedFolders).
func (m *Schedule) folderTerms(p *symbolic.Pool, c *machine.Config) []*symbolic.Expr {
	var terms []*symbolic.Expr
	for i, a := range c.Args {
		if info, err := os.Stat(hostPath(c, a)); i == 0 || err != nil || !info.IsDir() {
			continue
		}
		for k, b := range []byte(a + "\x00") {
			terms = append(terms, p.Eq(p.Symbol(fmt.Sprintf("argv[%d][%d]", i, k), 8), p.Word(uint64(b), 8)))
		}
	}
	for _, folder := range m.listedFolders() {
		hash := ""
		if list, err := listFolder(hostPathOf(c, folder)); err == nil {
			sum := sha256.Sum256(list)
			hash = hex.EncodeToString(sum[:])
		}
		terms = append(terms, preconditions.ContentTerm(p, folder, hash))
	}
	return terms
}

// listedFolders returns the folders whose names are fixed, by their names in symbols: those that arguments name, and the
// folders in them in which the run read a file.
func (m *Schedule) listedFolders() []string {
	var list []string
	for _, i := range m.folders {
		list = append(list, fmt.Sprintf("argv[%d]/", i))
	}
	for _, name := range m.File.Varying {
		for folder, _ := path.Split(name); folder != ""; folder, _ = path.Split(strings.TrimSuffix(folder, "/")) {
			list = append(list, folder)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// listFolder returns the names in a folder and what they are, in the order of the names.
func listFolder(host string) ([]byte, error) {
	entries, err := os.ReadDir(host)
	if err != nil {
		return nil, err
	}
	var list bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&list, "%s%c%v\n", e.Name(), 0, e.Type())
	}
	return list.Bytes(), nil
}

// hostPathOf returns the host's path of a file by its name in symbols: "argv[2]", "argv[2]/part/file" in a folder, or the
// guest's path.
func hostPathOf(c *machine.Config, name string) string {
	var i int
	if n, _ := fmt.Sscanf(name, "argv[%d]", &i); n == 0 {
		return hostPath(c, name)
	}
	if i < 0 || i >= len(c.Args) {
		return ""
	}
	_, rest, _ := strings.Cut(name, "]")
	return hostPath(c, c.Args[i]) + rest
}
