package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// progress shows which steps run, and estimates the time that is left: on a terminal on one line that changes, and
// otherwise a line for each step that begins or ends.
type progress struct {
	to       io.Writer
	terminal bool

	mutex       sync.Mutex
	parallel    int
	total, done int
	waiting     []*task
	running     []*state
	measured    float64 // seconds of steps that measured something
	estimated   float64 // of the same, by the plan
	shown       int     // characters of the line
	stop        chan struct{}
}

// state is a step that runs.
type state struct {
	task     *task
	began    time.Time
	row, of  int
	measures bool
}

func (p *progress) begin(tasks []*task, parallel int) {
	p.waiting, p.total, p.parallel, p.stop = slices.Clone(tasks), len(tasks), parallel, make(chan struct{})
	if !p.terminal {
		return
	}
	go func() {
		for {
			select {
			case <-p.stop:
				return
			case <-time.After(time.Second):
				p.mutex.Lock()
				p.showLine()
				p.mutex.Unlock()
			}
		}
	}()
}

func (p *progress) end() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	close(p.stop)
	p.clear()
}

func (p *progress) start(t *task) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.waiting = slices.DeleteFunc(p.waiting, func(w *task) bool { return w == t })
	p.running = append(p.running, &state{task: t, began: time.Now()})
	if !p.terminal {
		fmt.Fprintf(p.to, "papers: %s begins; %s\n", t.name(), p.status())
	}
}

// row notes that a step has finished rows, and begins another.
func (p *progress) row(t *task, done, of int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, s := range p.running {
		if s.task == t {
			s.row, s.of, s.measures = done, of, true
		}
	}
}

func (p *progress) finish(t *task, took time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	at := slices.IndexFunc(p.running, func(s *state) bool { return s.task == t })
	if s := p.running[at]; s.measures && t.result.Error == "" {
		p.measured += took.Seconds()
		p.estimated += t.seconds
	}
	p.running = slices.Delete(p.running, at, at+1)
	p.done++
	p.clear()
	how := "done"
	switch t.result.Error {
	case "":
	case errInterrupted.Error():
		how = "interrupted"
	default:
		how = "failed: " + t.result.Error
	}
	fmt.Fprintf(p.to, "papers: %s %s, %.0f s; %s\n", t.name(), how, took.Seconds(), p.status())
	p.showLine()
}

// left estimates the time left from the times of the finished steps, in ratio to the plan's.
func (p *progress) left() time.Duration {
	scale := 1.0
	if p.estimated > 0 {
		scale = p.measured / p.estimated
	}
	var shared, alone float64
	add := func(t *task, part float64) {
		if t.step.Alone {
			alone += part * t.seconds
		} else {
			shared += part * t.seconds
		}
	}
	for _, t := range p.waiting {
		add(t, 1)
	}
	longest := 0.0
	for _, s := range p.running {
		part := 1.0
		if s.of > 0 {
			part = 1 - float64(s.row)/float64(s.of)
		}
		add(s.task, part)
		longest = max(longest, part*s.task.seconds)
	}
	return time.Duration(scale * (max(shared/float64(p.parallel), longest) + alone) * float64(time.Second))
}

// status is how far all is.
func (p *progress) status() string {
	text := fmt.Sprintf("%d of %d steps", p.done, p.total)
	if p.done < p.total {
		text += fmt.Sprintf(", about %s left", formatTime(p.left()))
	}
	return text
}

func formatTime(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}

// showLine writes the line of a terminal.
func (p *progress) showLine() {
	if !p.terminal || len(p.running) == 0 {
		return
	}
	var names []string
	for _, s := range p.running {
		name := s.task.name()
		if s.of > 0 {
			name += fmt.Sprintf(" (%d of %d)", s.row, s.of)
		}
		names = append(names, name)
	}
	line := p.status() + ": " + strings.Join(names, ", ")
	const width = 79
	if len(line) > width {
		line = line[:width]
	}
	p.clear()
	fmt.Fprint(p.to, line)
	p.shown = len(line)
}

// clear removes the line of a terminal.
func (p *progress) clear() {
	if p.shown > 0 {
		fmt.Fprintf(p.to, "\r%s\r", strings.Repeat(" ", p.shown))
		p.shown = 0
	}
}
