package strangers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/heddle-dmt/heddle/internal/job"
)

// Folders of the guest: programs start in the first, and the preloaded library is in the second.
const (
	guestInputs   = "/strangers"
	guestInjected = "/injected"
)

// failure is why a cell does not work.
type failure struct {
	State State
	Text  string
}

func (f failure) Error() string { return f.Text }

func defect(format string, args ...any) error { return failure{Defect, fmt.Sprintf(format, args...)} }

// session runs the commands of one cell.
type session struct {
	corpus  *Corpus
	program Program
	heddle  string // the executable
	dir     string // for files; removed afterwards
	budget  *budget
	plain   time.Duration // processor time of a plain run on the small input
}

// inputs are the files of a program, in a folder, and what the program does with them on the host.
type inputs struct {
	dir    string
	status int
	output string // after the filter
	native time.Duration
}

// makeInputs makes the inputs of a size from a seed, and runs the program on the host.
func (s *session) makeInputs(ctx context.Context, size job.Size, seed int) (*inputs, error) {
	in := &inputs{dir: filepath.Join(s.dir, fmt.Sprintf("inputs-%d-%d", size, seed))}
	if err := s.corpus.Recipes[s.program.Recipe].make(ctx, s.budget, in.dir, size, seed); err != nil {
		return nil, errInputs.Wrap(err, s.program.Name)
	}
	// The program runs in a copy: it may leave files.
	fresh := in.dir + "-native"
	if err := os.CopyFS(fresh, os.DirFS(in.dir)); err != nil {
		return nil, errInputs.Wrap(err, s.program.Name)
	}
	p := &process{Args: append([]string{s.program.File}, s.program.Arguments...), Dir: fresh, Stdin: s.program.Stdin}
	if err := s.budget.run(ctx, p); err != nil {
		return nil, err
	}
	if p.status >= 126 {
		return nil, errNative.New(s.program.Name, p.status, firstLines(p.stderr))
	}
	in.status, in.native = p.status, p.spent
	var err error
	in.output, err = s.filter(ctx, p.stdout)
	return in, err
}

// filter removes from an output what may vary.
func (s *session) filter(ctx context.Context, output []byte) (string, error) {
	if s.program.Filter == "" {
		return string(output), nil
	}
	p := &process{Args: []string{"sh", "-c", s.program.Filter}, Dir: s.dir, input: output}
	err := s.budget.run(ctx, p)
	return string(p.stdout), err
}

// run is a command of heddle: words of the command, flags, and whether the program follows.
type run struct {
	command []string
	flags   []string
	in      *inputs // the program runs on these; nil: the command has no program
	bare    bool    // the command takes no standard input and no flags of the machine
}

// heddle carries out a command of heddle.
func (s *session) heddleRun(ctx context.Context, r run) (*process, error) {
	args := append([]string{s.heddle}, r.command...)
	args = append(args, r.flags...)
	if r.in != nil {
		args = append(args, "--mount", r.in.dir+":"+guestInputs, "--chdir", guestInputs)
		for _, e := range environment() {
			args = append(args, "--env", e)
		}
		if s.program.CPU != "" {
			args = append(args, "--cpu", s.program.CPU)
		}
		if s.program.Stdin != "" {
			args = append(args, "--stdin", filepath.Join(r.in.dir, s.program.Stdin))
		}
		args = append(args, "--", s.program.File)
		args = append(args, s.program.Arguments...)
	}
	p := &process{Args: args, Dir: s.dir}
	if err := s.budget.run(ctx, p); err != nil {
		return p, err
	}
	if crash := crashOf(p); crash != "" {
		return p, failure{Defect, crash}
	}
	if p.status == 125 {
		return p, failure{Refused, sentence(p.stderr)}
	}
	return p, nil
}

var crashes = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*|SIGSEGV: .*|unexpected fault address.*|bug: .*)$`)

// crashOf is the first line of a crash of heddle, or empty.
func crashOf(p *process) string {
	if m := crashes.Find(p.stderr); m != nil && (p.status == 2 || p.status >= 128) {
		return "heddle crashed: " + string(m)
	}
	return ""
}

const noSentence = "no sentence"

// sentence is the last one that heddle wrote on standard error, but for the command that repeats a run.
func sentence(stderr []byte) string {
	text := noSentence
	for _, line := range strings.Split(string(stderr), "\n") {
		if rest, ok := strings.CutPrefix(line, "heddle: "); ok && !strings.HasPrefix(rest, "the same run again:") {
			text = rest
		}
	}
	return text
}

// firstLines are the first lines of a text as one line.
func firstLines(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[:min(len(lines), 3)], "; ")
}

// expectNative returns a defect if a run did something else than the program does on the host.
func (s *session) expectNative(ctx context.Context, what string, p *process, in *inputs) error {
	output, err := s.filter(ctx, p.stdout)
	switch {
	case err != nil:
		return err
	case p.status != in.status && (p.status == 123 || p.status == 124):
		return failure{Defect, what + ": " + sentence(p.stderr)}
	case p.status != in.status:
		return defect("%s: status %d, on the host %d: %s", what, p.status, in.status, sentence(p.stderr))
	case output != in.output:
		return defect("%s: another output than on the host", what)
	}
	return nil
}

// summary is the part of the summary of a run that cells use.
type summary struct {
	Threads     int    `json:"threads"`
	Cycles      uint64 `json:"cycles"`
	Digest      string `json:"digest"`
	StateDigest string `json:"state_digest"`
	Cache       string `json:"cache"`
	CacheEntry  string `json:"cache_entry"`
	Schedule    *struct {
		Followed    bool `json:"followed"`
		Operations  int  `json:"operations"`
		Constraints int  `json:"constraints"`
	} `json:"schedule"`
}

// summarized carries out a command of heddle that writes a summary.
func (s *session) summarized(ctx context.Context, r run) (*process, *summary, error) {
	file := filepath.Join(s.dir, "summary.json")
	r.flags = append(r.flags, "--summary", file)
	p, err := s.heddleRun(ctx, r)
	if err != nil {
		return p, nil, err
	}
	sum := &summary{}
	return p, sum, readJSON(file, sum)
}

func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

// plainRun makes the small inputs and runs the program on them, as a measure for other runs.
func (s *session) plainRun(ctx context.Context) (*inputs, *summary, error) {
	in, err := s.makeInputs(ctx, s.program.Small, 1)
	if err != nil {
		return nil, nil, err
	}
	p, sum, err := s.summarized(ctx, run{command: []string{"run", "-q"}, in: in})
	if err != nil {
		return nil, nil, err
	}
	s.plain = p.spent
	return in, sum, s.expectNative(ctx, "run", p, in)
}

// ratio is a processor time in plain runs.
func (s *session) ratio(d time.Duration) string {
	return fmt.Sprintf("%.1fx", d.Seconds()/max(s.plain.Seconds(), 0.001))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
