package sweep

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// NewProgress reports to w: a bar with the time left when w is a terminal, a
// line for each task otherwise.
func NewProgress(w io.Writer) Progress {
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return &bar{w: w}
	}
	return &lines{w: w}
}

// lines writes a plain line for each task.
type lines struct {
	w           io.Writer
	done, tasks int
}

func (l *lines) Start(tasks, stored int) {
	l.done, l.tasks = 0, tasks
	fmt.Fprintf(l.w, "%d to do, %d stored\n", tasks, stored)
}

func (l *lines) Done(line string, _ bool) {
	l.done++
	fmt.Fprintf(l.w, "%d/%d %s\n", l.done, l.tasks, line)
}

func (*lines) Stop() {}

// bar shows how many tasks are done and the time left; only events that must not be
// missed gets a line of its own, above the bar.
type bar struct {
	w   io.Writer
	bar *progressbar.ProgressBar
}

func (b *bar) Start(tasks, stored int) {
	fmt.Fprintf(b.w, "%d to do, %d stored\n", tasks, stored)
	b.bar = progressbar.NewOptions(tasks,
		progressbar.OptionSetWriter(b.w), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetWidth(30),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionShowElapsedTimeOnFinish())
	_ = b.bar.RenderBlank()
}

func (b *bar) Done(line string, trouble bool) {
	if trouble {
		_ = b.bar.Clear()
		fmt.Fprintln(b.w, line)
	}
	_ = b.bar.Add(1)
}

func (b *bar) Stop() { fmt.Fprintln(b.w) }
