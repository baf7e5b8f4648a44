package mm

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// Kinds of request to the native process.
const (
	nativeSyscall = iota
	nativeLoad
	nativeStore
	nativeMincore
	nativeFork
)

// native is the process.
type native struct {
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

// answer is the reply of the process to a request.
type answer struct {
	result   int64
	children []int64
	maps     []mapping
}

// mapping is a line of /proc/PID/maps.
type mapping struct {
	start, end, offset uint64
	perms, name        string
}

func (m mapping) String() string {
	return fmt.Sprintf("%x-%x %s %x %s\n", m.start, m.end, m.perms, m.offset, m.name)
}

// parseMapping leaves out device and inode, folders, and names in brackets.
func parseMapping(line string) (m mapping) {
	fields := strings.SplitN(line, " ", 6)
	start, end, _ := strings.Cut(fields[0], "-")
	m.start, _ = strconv.ParseUint(start, 16, 64)
	m.end, _ = strconv.ParseUint(end, 16, 64)
	m.perms = fields[1]
	m.offset, _ = strconv.ParseUint(fields[2], 16, 64)
	if i := strings.LastIndexByte(line, '/'); i >= 0 {
		m.name = line[i:]
	}
	return m
}

// canonical merges neighbours: the kernel does not always.
func canonical(maps []mapping) (merged []mapping) {
	for _, m := range maps {
		if n := len(merged) - 1; n >= 0 {
			last := &merged[n]
			if last.end == m.start && last.perms == m.perms && last.name == m.name &&
				(m.name == "" || last.offset+last.end-last.start == m.offset) {
				last.end = m.end
				continue
			}
		}
		merged = append(merged, m)
	}
	return merged
}

// startNative starts the process on two files, without address randomisation.
func startNative(program, readOnly, writable string) (*native, answer, error) {
	cmd := exec.Command("setarch", "-R", program, readOnly, writable)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, answer{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, answer{}, err
	}
	if err := cmd.Start(); err != nil {
		return nil, answer{}, err
	}
	n := &native{in, bufio.NewReader(out), cmd}
	a, err := n.answer()
	return n, a, err
}

func (n *native) stop() {
	n.in.Close()
	n.cmd.Wait()
}

// ask sends a request.
func (n *native) ask(kind int, args ...uint64) (answer, error) {
	words := make([]uint64, 8)
	words[0] = uint64(kind)
	copy(words[1:], args)
	if err := binary.Write(n.in, binary.LittleEndian, words); err != nil {
		return answer{}, err
	}
	return n.answer()
}

func (n *native) answer() (a answer, err error) {
	for {
		line, err := n.out.ReadString('\n')
		if err != nil {
			return a, err
		}
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case ".":
			return a, nil
		case "=":
			a.result, _ = strconv.ParseInt(rest, 10, 64)
		case "child":
			x, _ := strconv.ParseInt(rest, 10, 64)
			a.children = append(a.children, x)
		case "map":
			a.maps = append(a.maps, parseMapping(rest))
		}
	}
}
