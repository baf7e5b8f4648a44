package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/paper-scripts/papers/report"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
)

// task is a step that is to be done at a size.
type task struct {
	paper *paper
	step  *step
	flags []string
	// seconds is the estimated time of one core.
	seconds float64
	result  *report.Result
}

// runner does tasks.
type runner struct {
	root, programs, store string
	size                  string
	parallel              int
	stored                bool // nothing is run
	progress              *progress
}

// tasks lists the wanted steps.
func (p *plan) tasks(size string, wanted []string) (list []*task) {
	for i := range p.Papers {
		x := &p.Papers[i]
		for j := range x.Steps {
			if s := &x.Steps[j]; x.has(s, wanted) {
				list = append(list, &task{paper: x, step: s, flags: s.flags(size), seconds: s.Seconds[size]})
			}
		}
	}
	return list
}

func (t *task) name() string { return t.paper.name(t.step) }

// runAll does all tasks: first side by side all that may, then one by one the others, which measure the host's
// time. A task that fails does not stop the others.
func (r *runner) runAll(ctx context.Context, tasks []*task) error {
	r.progress.begin(tasks, r.parallel)
	defer r.progress.end()
	queue := make(chan *task)
	var group sync.WaitGroup
	for range r.parallel {
		group.Add(1)
		go func() {
			defer group.Done()
			for t := range queue {
				r.do(ctx, t)
			}
		}()
	}
	for _, t := range tasks {
		if !t.step.Alone && ctx.Err() == nil {
			queue <- t
		}
	}
	close(queue)
	group.Wait()
	for _, t := range tasks {
		if t.step.Alone && ctx.Err() == nil {
			r.do(ctx, t)
		}
	}
	return ctx.Err()
}

// do does a task, whose result has the error if it fails.
func (r *runner) do(ctx context.Context, t *task) {
	r.progress.start(t)
	began := time.Now()
	t.result = &report.Result{Program: t.paper.Program, Artefacts: t.step.Artefacts, Size: r.size, Flags: t.flags}
	sheets, err := r.call(ctx, t, r.stored)
	if ctx.Err() != nil {
		err = errInterrupted
	}
	if err != nil && !r.stored && ctx.Err() == nil {
		t.result.Error = err.Error()
		sheets, _ = r.call(ctx, t, true) // the rows that are stored
	} else if err != nil {
		t.result.Error = err.Error()
	}
	t.result.Sheets = sheets
	r.progress.finish(t, time.Since(began))
}

// call runs the program of a step and reads its tables; stored prints the stored rows alone. The program's
// messages go to a log.
func (r *runner) call(ctx context.Context, t *task, stored bool) ([]*sheet.Sheet, error) {
	args := []string{"--format", "json", "--store", filepath.Join(r.store, t.paper.Program)}
	if stored {
		args = append(args, "--stored")
	}
	args = append(append(args, t.flags...), t.step.Artefacts...)
	c := exec.CommandContext(ctx, filepath.Join(r.programs, t.paper.Program), args...)
	c.Dir = r.root
	c.Env = append(os.Environ(), t.step.Environment...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 30 * time.Second
	var out bytes.Buffer
	messages := &messages{row: func(done, of int) { r.progress.row(t, done, of) }}
	c.Stdout, c.Stderr = &out, messages
	err := c.Run()
	if !stored {
		if e := r.writeLog(t, messages.log); e != nil && err == nil {
			return nil, e
		}
	}
	if err != nil {
		if last := lastLines(string(messages.log), t.paper.Program+": "); last != "" {
			err = errors.New(last)
		}
		return nil, err
	}
	sheets, err := sheet.Read(&out)
	if err != nil {
		return nil, fmt.Errorf("the output of %s: %w", t.paper.Program, err)
	}
	return sheets, nil
}

// writeLog keeps a program's messages.
func (r *runner) writeLog(t *task, text []byte) error {
	dir := filepath.Join(r.store, "logs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return outfile.WriteBytes(filepath.Join(dir, strings.ReplaceAll(t.name(), "/", "-")+".log"), text)
}

// lastLines is a program's last message, from the line on that begins with its name.
func lastLines(log, name string) string {
	at := strings.LastIndex("\n"+log, "\n"+name)
	if at < 0 {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(log[at:], name))
}

// rowMessage is a program's message that it begins a row.
var rowMessage = regexp.MustCompile(`^([0-9]+) of ([0-9]+): `)

// messages is the text that a program writes to standard error.
type messages struct {
	log  []byte
	read int // bytes of the log that are of lines whose end is there
	row  func(done, of int)
}

// Write keeps the text, and calls row for each line that says how far the program is.
func (m *messages) Write(text []byte) (int, error) {
	m.log = append(m.log, text...)
	for {
		line, _, found := bytes.Cut(m.log[m.read:], []byte("\n"))
		if !found {
			return len(text), nil
		}
		m.read += len(line) + 1
		if found := rowMessage.FindSubmatch(line); found != nil {
			done, _ := strconv.Atoi(string(found[1]))
			of, _ := strconv.Atoi(string(found[2]))
			m.row(done-1, of)
		}
	}
}
