package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// names finds what is in the files that a run had in memory.
type names struct {
	args    []string
	root    string
	mounts  []mount
	sums    map[string]string // SHA-256 of the files that the run read, by path of the host
	files   map[string]*debuginfo.File
	changed []string // files that are not what they were
	missing []string
}

type mount struct{ host, guest string }

// words reads JSON strings, also if they are written as {"base64": ...}.
type words string

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(w))
	}
	var other map[string][]byte
	err := json.Unmarshal(b, &other)
	*w = words(other["base64"])
	return err
}

// newNames reads a trace's manifest and summary, either of which may be missing.
func newNames(manifest, summary []byte) (*names, error) {
	var run struct {
		Args   []words `json:"args"`
		RootFS words   `json:"rootfs"`
		Mounts []struct {
			Host  words `json:"host"`
			Guest words `json:"guest"`
		} `json:"mounts"`
	}
	var end struct {
		Result struct {
			Inputs []struct {
				Path   string `json:"path"`
				SHA256 string `json:"sha256"`
			} `json:"inputs"`
		} `json:"result"`
	}
	n := &names{sums: map[string]string{}, files: map[string]*debuginfo.File{}}
	if manifest != nil {
		if err := json.Unmarshal(manifest, &run); err != nil {
			return nil, err
		}
	}
	if summary != nil {
		if err := json.Unmarshal(summary, &end); err != nil {
			return nil, err
		}
	}
	for _, a := range run.Args {
		n.args = append(n.args, string(a))
	}
	n.root = string(run.RootFS)
	for _, m := range run.Mounts {
		n.mounts = append(n.mounts, mount{string(m.Host), string(m.Guest)})
	}
	for _, in := range end.Result.Inputs {
		n.sums[in.Path] = in.SHA256
	}
	return n, nil
}

// host is where on the host a file of the guest is.
func (n *names) host(guest string) string {
	best := mount{guest: "/", host: cmp.Or(n.root, "/")}
	for _, m := range n.mounts {
		if (guest == m.guest || strings.HasPrefix(guest, strings.TrimSuffix(m.guest, "/")+"/")) && len(m.guest) >= len(best.guest) {
			best = m
		}
	}
	return filepath.Join(best.host, strings.TrimPrefix(guest, best.guest))
}

// file reads a file of the guest once; nil if it does not help.
func (n *names) file(name string) *debuginfo.File {
	if f, ok := n.files[name]; ok {
		return f
	}
	at := n.host(name)
	var f *debuginfo.File
	switch sum, err := hash(at); {
	case err != nil:
		n.missing = append(n.missing, name)
	case n.sums[at] != "" && sum != n.sums[at]:
		n.changed = append(n.changed, name)
	default:
		if f, err = debuginfo.Open(at); err != nil {
			f = nil // no ELF file: it has no names
		}
	}
	n.files[name] = f
	return f
}

func hash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// notes says of which files there are no names.
func (n *names) notes() (list []string) {
	slices.Sort(n.changed)
	slices.Sort(n.missing)
	for _, name := range n.changed {
		list = append(list, name+" is not what it was when the run was recorded: it gives no names")
	}
	for _, name := range n.missing {
		list = append(list, name+" cannot be read: it gives no names")
	}
	return list
}

// image is a place in a mapped file.
type image struct {
	name string
	addr uint64 // in the file, without bias
	file *debuginfo.File
}

// image finds the place of an address in the file that is mapped there, or just
// before.
func (n *names) image(m *event.Mapping, addr arch.Addr) image {
	if m == nil {
		return image{}
	}
	offset := m.Offset + uint64(addr-m.Addr)
	inside := uint64(addr-m.Addr) < m.Size
	f := n.file(m.Name)
	if f == nil {
		if inside {
			return image{name: m.Name, addr: offset}
		}
		return image{}
	}
	if at, ok := f.Address(offset); ok {
		return image{m.Name, at, f}
	}
	return image{}
}

// imageOf finds a place.
func (n *names) imageOf(p place) image {
	if p.file == (event.Mapping{}) {
		return image{}
	}
	return n.image(&p.file, p.pc)
}

// copies reports whether an instruction is in a function that copies or compares
// memory for its caller.
func (n *names) copies(p image) bool {
	if p.file == nil {
		return false
	}
	function, _ := p.file.FunctionAt(p.addr)
	return function != nil && copying(function.Name())
}

// copiers are such functions, string(3) and bstring(3), by what the C library
// calls them and their variants for processors.
var copiers = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(goCopiers + `|^_*(mem(cpy|pcpy|move|set|cmp|chr|rchr|mem|ccpy)|rawmemchr|` +
		`str(n?len|n?cpy|n?cat|n?cmp|n?casecmp|r?chr|chrnul|str|c?spn|pbrk|n?dup|lcpy|lcat)|stpn?cpy|` +
		`wcs(n?len|n?cpy|n?cat|n?cmp|r?chr)|wmem(cpy|move|set|cmp|chr)|bcopy|bzero|bcmp)(_.*)?$`)
})

var goRuntime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(runtime\.|internal/(runtime|bytealg)[./])`)
})

// goAssembly are the parts of comparisons, searches and hashes of Go's run-time that are in assembly. They read
// words, of which they do not use the bytes after the operand.
var goAssembly = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(memeqbody|cmpbody|countbody|indexbody|indexbytebody|aeshashbody)$`)
})

// goCopiers are functions of Go's run-time that access memory for their callers: they copy or
// clear, or are operations on maps, slices and strings.
const goCopiers = `^(runtime\.(mem(move|clr)|typed(memmove|memclr|slicecopy)|slicecopy|growslice|map|` +
	`concatstring|slicebytetostring|stringtoslice|conv[TI])|internal/runtime/maps\.)`

func copying(function string) bool { return copiers().MatchString(function) }

// ownedByRuntime reports whether code is the C library's, the dynamic linker's, or the run-time's of Go.
func ownedByRuntime(f *Frame) bool {
	return library(f.Image) || goRuntime().MatchString(f.Function) ||
		goAssembly().MatchString(f.Function) && strings.HasSuffix(f.File, "_amd64.s")
}

// library reports whether a file is the C library, a part of it, or the dynamic
// linker.
func library(name string) bool {
	base := path.Base(name)
	for _, p := range []string{"libc.so", "libc-2.", "ld-linux", "ld-musl", "ld-2.", "libpthread", "libm.so", "libm-2.", "libdl.", "librt."} {
		if strings.HasPrefix(base, p) {
			return true
		}
	}
	return false
}
