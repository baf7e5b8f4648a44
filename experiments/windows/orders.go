package windows

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/analyses/bytesets"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/windows"
)

var (
	errOrders = errs.Define("window-schedules-unreadable",
		"the file of windows' schedules {file} cannot be read",
		"The file may not be read; the rest of the sentence says why.",
		"Name a file that --window-schedules has written, or one that does not exist yet.")
	errNoOrders = errs.Define("window-schedules-damaged",
		"the file {file} has no windows' schedules that this version can use: {problem}",
		"It is another file, is of another version of heddle, or was cut or changed.",
		"Name a file that --window-schedules has written, or one that does not exist yet.")
)

// version is the first line of a file of orders.
const version = "heddle window schedules 5"

// LoadStore reads the orders of a file; one that does not exist has none.
func LoadStore(path string) (*windows.Store, error) {
	s := windows.NewStore()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, errOrders.Wrap(err, path)
	}
	if problem := readStore(text, s); problem != "" {
		return nil, errNoOrders.New(path, problem)
	}
	return s, nil
}

// readStore reads the text of a file, and returns its error.
func readStore(text []byte, s *windows.Store) (problem string) {
	end := bytes.LastIndex(text, []byte("end "))
	if end < 0 || string(text[end:]) != endLine(text[:end]) {
		return "the checksum is wrong or missing"
	}
	lines := bufio.NewScanner(bytes.NewReader(text[:end]))
	lines.Buffer(nil, 1<<20)
	var key uint64
	var order windows.Schedule
	var joint jointReader
	open := false
	finish := func() {
		if open {
			order.Joint = joint.finish(order.Hidden)
			s.Add(key, order)
		}
		order, joint = windows.Schedule{}, jointReader{}
	}
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		var err error
		switch {
		case n == 1:
			if lines.Text() != version {
				return "line 1 is not " + strconv.Quote(version)
			}
		case len(fields) == 2 && fields[0] == "seed":
			s.Seed, err = strconv.ParseUint(fields[1], 10, 64)
		case len(fields) == 2 && fields[0] == "cores":
			s.Cores, err = strconv.Atoi(fields[1])
		case len(fields) == 3 && fields[0] == "window":
			finish()
			open = true
			if key, err = strconv.ParseUint(fields[1], 16, 64); err == nil {
				order.Exact, err = strconv.ParseUint(fields[2], 16, 64)
			}
		case len(fields) > 0 && fields[0] == "bytes" && open:
			var p windows.Pattern
			p, err = readPattern(fields[1:])
			order.Patterns = append(order.Patterns, p)
		case len(fields) == 2 && fields[0] == "registers" && open:
			order.Registers, err = strconv.ParseUint(fields[1], 16, 64)
		case len(fields) > 6 && fields[0] == "pointer" && open:
			var x windows.Pointer
			x, err = readPointer(fields[1:])
			order.Pointers = append(order.Pointers, x)
		case len(fields) > 4 && fields[0] == "memory" && open:
			var m windows.HiddenState
			m, err = readState(fields[1:])
			order.Hidden = append(order.Hidden, m)
		case len(fields) > 2 && fields[0] == "term" && open:
			err = joint.add(strings.TrimPrefix(lines.Text(), "term "))
		case len(fields) == 3 && open:
			var kind, what uint64
			kind, err = strconv.ParseUint(fields[1], 10, 8)
			if err == nil {
				what, err = strconv.ParseUint(fields[2], 10, 64)
			}
			order.Turns = append(order.Turns, windows.Point{Thread: fields[0], Kind: sched.PointKind(kind), What: what})
		case len(fields) == 9 && fields[0] == "race" && open:
			var c windows.Constraint
			c.First, err = readPlace(fields[1:5])
			if err == nil {
				c.Second, err = readPlace(fields[5:])
			}
			order.Constraints = append(order.Constraints, c)
		default:
			return fmt.Sprintf("line %d is %q", n, lines.Text())
		}
		if err != nil {
			return fmt.Sprintf("line %d is %q", n, lines.Text())
		}
	}
	finish()
	if lines.Err() != nil {
		return lines.Err().Error()
	}
	return ""
}

// patternText writes the set of each byte: its value, * for any, or the words of the set.
func patternText(p windows.Pattern) string {
	var b strings.Builder
	for _, v := range p {
		switch set := bytesets.Set(v); {
		case set == bytesets.All():
			b.WriteString(" *")
		case set.Len() == 1:
			fmt.Fprintf(&b, " %d", set.First())
		default:
			fmt.Fprintf(&b, " %x,%x,%x,%x", v[0], v[1], v[2], v[3])
		}
	}
	return b.String()
}

func readPattern(fields []string) (p windows.Pattern, err error) {
	p = make(windows.Pattern, len(fields))
	for i, text := range fields {
		words := strings.Split(text, ",")
		var v uint64
		switch {
		case text == "*":
			p[i] = windows.Values(bytesets.All())
		case len(words) == len(p[i]):
			for n := range words {
				if p[i][n], err = strconv.ParseUint(words[n], 16, 64); err != nil {
					return nil, err
				}
			}
		default:
			if v, err = strconv.ParseUint(text, 10, 8); err != nil {
				return nil, err
			}
			p[i] = windows.Values(bytesets.Only(byte(v)))
		}
	}
	return p, nil
}

func readState(fields []string) (m windows.HiddenState, err error) {
	process, err := strconv.ParseInt(fields[0], 10, 32)
	if err != nil {
		return m, err
	}
	at, err := strconv.ParseUint(fields[1], 16, 64)
	if err != nil {
		return m, err
	}
	m.Process, m.At = int32(process), arch.Addr(at)
	if m.By, err = strconv.Atoi(fields[2]); err != nil {
		return m, err
	}
	m.Pattern, err = readPattern(fields[3:])
	return m, err
}

func numbersText(list []uint64) string {
	var b strings.Builder
	for _, n := range list {
		fmt.Fprintf(&b, " %x", n)
	}
	return b.String()
}

// readPointer reads process, address, pointer that leads there, value, numbers of words used and of pointers compared, these, and excluded values.
func readPointer(fields []string) (x windows.Pointer, err error) {
	process, err := strconv.ParseInt(fields[0], 10, 32)
	if err != nil {
		return x, err
	}
	x.Process = int32(process)
	if x.By, err = strconv.Atoi(fields[2]); err != nil {
		return x, err
	}
	used, err := strconv.Atoi(fields[4])
	if err != nil {
		return x, err
	}
	compared, err := strconv.Atoi(fields[5])
	if err != nil || used < 0 || compared < 0 || used+compared > len(fields)-6 {
		return x, strconv.ErrRange
	}
	var list []uint64
	for _, text := range slices.Concat(fields[1:2], fields[3:4], fields[6:]) {
		n, err := strconv.ParseUint(text, 16, 64)
		if err != nil {
			return x, err
		}
		list = append(list, n)
	}
	x.At, x.Value, list = arch.Addr(list[0]), list[1], list[2:]
	for _, n := range list[used : used+compared] {
		x.Compared = append(x.Compared, int(n))
	}
	x.Used, x.Not = list[:used], list[used+compared:]
	return x, nil
}

// readPlace reads a place as placeText writes it.
func readPlace(fields []string) (p windows.Place, err error) {
	p.Thread = fields[0]
	pc, err := strconv.ParseUint(fields[2], 16, 64)
	if err == nil {
		p.Cuts, err = strconv.Atoi(fields[1])
	}
	if err == nil {
		p.Occurrence, err = strconv.Atoi(fields[3])
	}
	p.PC = arch.Addr(pc)
	return p, err
}

func placeText(p *windows.Place) string {
	return fmt.Sprintf("%s %d %x %d", p.Thread, p.Cuts, uint64(p.PC), p.Occurrence)
}

func endLine(text []byte) string { return fmt.Sprintf("end %016x\n", xxh3.Hash(text)) }

// SaveStore writes the orders to a file.
func SaveStore(path string, s *windows.Store) error { return outfile.WriteBytes(path, storeText(s)) }

// storeText is the text of a file of orders.
func storeText(s *windows.Store) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nseed %d\ncores %d\n", version, s.Seed, s.Cores)
	for key, order := range s.All() {
		fmt.Fprintf(&b, "window %x %x\n", key, order.Exact)
		for _, p := range order.Patterns {
			fmt.Fprintf(&b, "bytes%s\n", patternText(p))
		}
		if order.Patterns != nil {
			fmt.Fprintf(&b, "registers %x\n", order.Registers)
		}
		for i := range order.Pointers {
			x := &order.Pointers[i]
			compared := make([]uint64, len(x.Compared))
			for i, n := range x.Compared {
				compared[i] = uint64(n)
			}
			fmt.Fprintf(&b, "pointer %d %x %d %x %d %d%s%s%s\n", x.Process, uint64(x.At), x.By, x.Value, len(x.Used), len(compared),
				numbersText(x.Used), numbersText(compared), numbersText(x.Not))
		}
		hidden := slices.Clone(order.Hidden)
		slices.SortFunc(hidden, func(x, y windows.HiddenState) int {
			return cmp.Or(cmp.Compare(x.Process, y.Process), cmp.Compare(x.At, y.At))
		})
		for _, m := range hidden {
			fmt.Fprintf(&b, "memory %d %x %d%s\n", m.Process, uint64(m.At), m.By, patternText(m.Pattern))
		}
		if order.Joint != nil {
			for _, line := range order.Joint.Lines {
				fmt.Fprintf(&b, "term %s\n", line)
			}
		}
		for _, p := range order.Turns {
			fmt.Fprintf(&b, "%s %d %d\n", p.Thread, p.Kind, p.What)
		}
		for i := range order.Constraints {
			c := &order.Constraints[i]
			fmt.Fprintf(&b, "race %s %s\n", placeText(&c.First), placeText(&c.Second))
		}
	}
	b.WriteString(endLine(b.Bytes()))
	return b.Bytes()
}
