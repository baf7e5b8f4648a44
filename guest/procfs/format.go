package procfs

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

func decimal(n int32) string { return strconv.Itoa(int(n)) }

func compareNames(a, b vfs.Dirent) int {
	an, aerr := strconv.Atoi(a.Name)
	bn, berr := strconv.Atoi(b.Name)
	if aerr == nil && berr == nil {
		return an - bn
	}
	return strings.Compare(a.Name, b.Name)
}

// constantFile makes a file whose text never changes.
func constantFile(name, text string) *entry {
	return &entry{name: name, text: func(*request) ([]byte, unix.Errno) { return []byte(text), 0 }}
}

// lineFile makes a file of one line.
func lineFile(name string, text func(r *request) string) *entry {
	return &entry{name: name, text: func(r *request) ([]byte, unix.Errno) { return []byte(text(r) + "\n"), 0 }}
}

// numberFile makes a file of one number.
func numberFile(name string, n func(r *request) int64) *entry {
	return lineFile(name, func(r *request) string { return strconv.FormatInt(n(r), 10) })
}

// fixedFolder makes a folder with fixed names.
func fixedFolder(name string, entries ...*entry) *entry {
	if entries == nil {
		entries = []*entry{}
	}
	return &entry{name: name, entries: entries}
}

// constantLink makes a link with a constant text.
func constantLink(name, text string) *entry {
	return &entry{name: name, link: func(*request) (string, unix.Errno) { return text, 0 }}
}

// textPrinter collects text.
type textPrinter struct{ bytes.Buffer }

func (p *textPrinter) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// printedFile makes a file from a function that prints.
func printedFile(name string, print func(r *request, p *textPrinter)) *entry {
	return &entry{name: name, text: func(r *request) ([]byte, unix.Errno) {
		var p textPrinter
		print(r, &p)
		return p.Bytes(), 0
	}}
}

// kibibytes is a number of bytes in units of 1024.
func kibibytes(bytes uint64) uint64 { return bytes / 1024 }

// coreList is a set of numbers from 0 to n-1 in the format of lists of cores.
func coreList(n int) string {
	if n == 1 {
		return "0"
	}
	return fmt.Sprintf("0-%d", n-1)
}

// maskList is a bit mask in the format of lists of cores: "0-3,5".
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

// toTicks is a time in units of 1/100 s.
func toTicks(ns int64) int64 { return ns / 10_000_000 }

// secondsText is a time in seconds with two decimals.
func secondsText(ns int64) string {
	return fmt.Sprintf("%d.%02d", ns/1_000_000_000, ns/10_000_000%100)
}
