package litmus

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/internal/errs"
)

var (
	errAssembler = errs.Define("litmus-assembler",
		"the assembler as cannot translate litmus tests",
		"The command as of GNU binutils is missing or fails; its words follow.",
		"Install binutils.")
	errRefused = errs.Define("litmus-refused",
		"{file}:{line}: the assembler refuses {instruction}: {words}",
		"The instruction does not exist with these operands.",
		"Correct the instruction.")
)

// Code is the machine code of a thread, which runs at any address: it refers
// to nothing but itself and the locations.
type Code struct {
	Bytes []byte
	// Starts are the offsets of the instructions, one more for the end, where
	// an UD2 stops execution.
	Starts []int
}

const endSize = 2 // bytes of UD2

// Assemble translates the code of tests with the system's assembler, all in
// one run of it. The result has the threads of each test.
func Assemble(tests []*Test) ([][]Code, error) {
	var s source
	for k, t := range tests {
		for i := range t.Threads {
			s.addThread(t, k, i)
		}
	}
	object, err := s.runAssembler()
	if err != nil {
		return nil, err
	}
	return readObject(object, tests)
}

// source is an assembly text with the origin of each line.
type source struct {
	text  bytes.Buffer
	lines []position
	words []string
}

func (s *source) addLine(at position, words, text string) {
	s.text.WriteString(text + "\n")
	s.lines = append(s.lines, at)
	s.words = append(s.words, words)
}

func (s *source) addThread(t *Test, k, thread int) {
	code := t.Threads[thread].Code
	for i, in := range code {
		text := t.assemblyText(in, fmt.Sprintf("t%d_%d_%d", k, thread, in.Target))
		s.addLine(position{t.File, in.Line}, in.text, fmt.Sprintf("t%d_%d_%d: %s", k, thread, i, text))
	}
	s.addLine(position{t.File, 0}, "", fmt.Sprintf("t%d_%d_%d: ud2", k, thread, len(code)))
}

var complaint = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\{standard input\}:([0-9]+): Error: (.*)$`)
})

// errorAtLine turns the assembler's words into an error that names the test's line.
func (s *source) errorAtLine(err error, said string) error {
	m := complaint().FindStringSubmatch(said)
	if m == nil {
		return errAssembler.Wrap(fmt.Errorf("%w %s", err, strings.TrimSpace(said)))
	}
	n, _ := strconv.Atoi(m[1])
	at := s.lines[n-1]
	return errRefused.New(at.file, at.line, s.words[n-1], m[2])
}

// runAssembler gives the object file.
func (s *source) runAssembler() ([]byte, error) {
	dir, err := os.MkdirTemp("", "heddle-litmus-")
	if err != nil {
		return nil, errAssembler.Wrap(err)
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "o")
	cmd := exec.Command("as", "--64", "-o", out, "-")
	cmd.Stdin = &s.text
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return nil, s.errorAtLine(err, said.String())
	}
	object, err := os.ReadFile(out)
	if err != nil {
		return nil, errAssembler.Wrap(err)
	}
	return object, nil
}

// readObject cuts the code of each thread out of an object file.
func readObject(object []byte, tests []*Test) ([][]Code, error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, errAssembler.Wrap(err)
	}
	text, err := f.Section(".text").Data()
	if err != nil {
		return nil, errAssembler.Wrap(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, errAssembler.Wrap(err)
	}
	at := map[string]int{}
	for _, s := range symbols {
		at[s.Name] = int(s.Value)
	}
	codes := make([][]Code, len(tests))
	for k, t := range tests {
		for i, thread := range t.Threads {
			var c Code
			first := at[fmt.Sprintf("t%d_%d_0", k, i)]
			for n := 0; n <= len(thread.Code); n++ {
				c.Starts = append(c.Starts, at[fmt.Sprintf("t%d_%d_%d", k, i, n)]-first)
			}
			c.Bytes = text[first : first+c.Starts[len(thread.Code)]+endSize]
			codes[k] = append(codes[k], c)
		}
	}
	return codes, nil
}
