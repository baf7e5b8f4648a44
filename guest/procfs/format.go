package procfs

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

func itoa(n int32) string { return strconv.Itoa(int(n)) }

func byName(a, b vfs.Dirent) int {
	an, aerr := strconv.Atoi(a.Name)
	bn, berr := strconv.Atoi(b.Name)
	if aerr == nil && berr == nil {
		return an - bn
	}
	return strings.Compare(a.Name, b.Name)
}

// fixed makes a file whose text never changes.
func fixed(name, text string) *entry {
	return &entry{name: name, text: func(*request) ([]byte, unix.Errno) { return []byte(text), 0 }}
}

// line makes a file of one line.
func line(name string, text func(r *request) string) *entry {
	return &entry{name: name, text: func(r *request) ([]byte, unix.Errno) { return []byte(text(r) + "\n"), 0 }}
}

// number makes a file of one number.
func number(name string, n func(r *request) int64) *entry {
	return line(name, func(r *request) string { return strconv.FormatInt(n(r), 10) })
}

// folder makes a folder with fixed names.
func folder(name string, entries ...*entry) *entry {
	if entries == nil {
		entries = []*entry{}
	}
	return &entry{name: name, entries: entries}
}

// linkTo makes a link that says the same always.
func linkTo(name, text string) *entry {
	return &entry{name: name, link: func(*request) (string, unix.Errno) { return text, 0 }}
}

// printer collects text.
type printer struct{ bytes.Buffer }

func (p *printer) f(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// printed makes a file from a function that prints.
func printed(name string, print func(r *request, p *printer)) *entry {
	return &entry{name: name, text: func(r *request) ([]byte, unix.Errno) {
		var p printer
		print(r, &p)
		return p.Bytes(), 0
	}}
}

// kB is a number of bytes in units of 1024.
func kB(bytes uint64) uint64 { return bytes / 1024 }

// list is a set of numbers from 0 to n-1 as lists of cores show it.
func list(n int) string {
	if n == 1 {
		return "0"
	}
	return fmt.Sprintf("0-%d", n-1)
}

// maskList is a bit mask as lists of cores show it: "0-3,5".
func maskList(mask uint64) string {
	var parts []string
	for i := 0; i < 64; i++ {
		if mask>>i&1 == 0 {
			continue
		}
		j := i
		for j < 63 && mask>>(j+1)&1 != 0 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(i))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", i, j))
		}
		i = j
	}
	return strings.Join(parts, ",")
}

// maskHex is a bit mask of n cores as the kernel prints bitmaps: groups of 32
// bits, of which the first has only the digits that n needs.
func maskHex(mask uint64, n int) string {
	if n <= 32 {
		return fmt.Sprintf("%0*x", (n+3)/4, mask)
	}
	return fmt.Sprintf("%0*x,%08x", (n-32+3)/4, mask>>32, uint32(mask))
}

func allCores(n int) uint64 { return ^uint64(0) >> (64 - n) }

// ticks is a time in units of 1/100 s.
func ticks(ns int64) int64 { return ns / 10_000_000 }

// seconds is a time in seconds with two decimals.
func seconds(ns int64) string {
	return fmt.Sprintf("%d.%02d", ns/1_000_000_000, ns/10_000_000%100)
}
