package strangers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTicks is the number of units of processor time in a second in /proc (USER_HZ), which is the same on
// all Linux hosts of this architecture.
const clockTicks = 100

// idleFactor is how much longer than its processor time the processes of a cell may take: a process that
// waits for ever uses none.
const idleFactor = 60

// process is a command that is run to its end.
type process struct {
	Args   []string
	Dir    string
	Stdin  string // a file that is standard input, or empty
	input  []byte // standard input without a file
	Env    []string
	status int
	stdout []byte
	stderr []byte
	spent  time.Duration // processor time
}

// budget is what the processes of a cell may still take.
type budget struct {
	seconds float64
	memory  int64
	idle    time.Duration
	limits  Limits
}

func newBudget(l Limits) *budget {
	seconds := float64(l.Seconds)
	return &budget{seconds, int64(l.Memory), time.Duration(l.Seconds) * idleFactor * time.Second, l}
}

// run runs a command. It fails if the command cannot be started, or exceeds the budget: then it is killed,
// with all processes that it has made.
func (b *budget) run(ctx context.Context, p *process) error {
	c := exec.Command(p.Args[0], p.Args[1:]...)
	var stdout, stderr bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = p.Dir, append(environment(), p.Env...), &stdout, &stderr
	if p.input != nil {
		c.Stdin = bytes.NewReader(p.input)
	}
	if p.Stdin != "" {
		file, err := os.Open(filepath.Join(p.Dir, p.Stdin))
		if err != nil {
			return err
		}
		defer file.Close()
		c.Stdin = file
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.WaitDelay = time.Second
	start := time.Now()
	if err := c.Start(); err != nil {
		return errStart.Wrap(err, p.Args[0])
	}
	ended, watched := make(chan struct{}), make(chan error, 1)
	go func() { watched <- b.watch(ctx, c.Process.Pid, ended) }()
	err := c.Wait()
	close(ended)
	exceeded := <-watched
	if exceeded == nil {
		exceeded = ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && exceeded == nil {
		return errStart.Wrap(err, p.Args[0])
	}
	p.stdout, p.stderr = stdout.Bytes(), stderr.Bytes()
	p.spent = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	b.seconds -= p.spent.Seconds()
	b.idle -= time.Since(start)
	p.status = c.ProcessState.ExitCode()
	if w := c.ProcessState.Sys().(syscall.WaitStatus); w.Signaled() {
		p.status = 128 + int(w.Signal())
	}
	return exceeded
}

// environment is that of all programs, on the host and under heddle.
func environment() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C"}
}

// watch kills the group of a process when it exceeds the budget, or the context ends.
func (b *budget) watch(ctx context.Context, pid int, ended <-chan struct{}) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(b.idle)
	for {
		var err error
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		case <-deadline:
			err = failure{Limit, fmt.Sprintf("takes more than %v", time.Duration(b.limits.Seconds)*idleFactor*time.Second)}
		case <-tick.C:
			seconds, memory := usage(pid)
			switch {
			case memory > b.memory:
				err = failure{Limit, fmt.Sprintf("takes more than %v of memory", b.limits.Memory)}
			case seconds > b.seconds:
				err = failure{Limit, fmt.Sprintf("takes more than %d s of processor time", b.limits.Seconds)}
			}
		}
		if err != nil {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
			return err
		}
	}
}

// usage is the processor time of a process in seconds and its resident memory in bytes; 0 when it has ended.
func usage(pid int) (seconds float64, memory int64) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name, which may have blanks, is in parentheses; the numbers of fields are those of proc(5).
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	if f := strings.Fields(string(rest)); len(f) > 21 {
		number := func(field int) int64 { n, _ := strconv.ParseInt(f[field-3], 10, 64); return n }
		seconds = float64(number(14)+number(15)) / clockTicks
		memory = number(24) * int64(os.Getpagesize())
	}
	return seconds, memory
}
