package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/heddle-dmt/heddle/internal/errs"
)

// Command is the hidden command under which heddle is a worker.
const Command = "worker"

var (
	errCrash = errs.Define("worker-crashed",
		"the worker process of a run ended with {status}: {text}",
		"heddle crashed during this run, or something on the host (the out-of-memory killer, an operator) ended its process.",
		"Repeat the run with `heddle run`; the sweep's other runs are not affected. If it crashes again it is a defect: report it with the sentence.")
	errStart = errs.Define("worker-not-started",
		"cannot start a worker process",
		"The host refused another process or descriptors for it, or heddle's own program file was moved or replaced while it ran; the rest of the sentence says which.",
		"Check limits on processes (ulimit -u), open files (ulimit -n) and memory, and start heddle again.")
	errJob = errs.Define("worker-job",
		"the worker cannot read its job",
		"The hidden worker command was called by hand, or by another version of heddle.",
		"Use heddle run or heddle experiment run.")
)

// Spawn carries out the job in a fresh process with the extra environment
// variables. The error says that the process failed, not that the run did. The
// job's events, if it asks for them, go to the writer.
func Spawn(ctx context.Context, job Job, env []string, events io.Writer) (Report, error) {
	self, err := os.Executable()
	if err != nil {
		return Report{}, errStart.Wrap(err)
	}
	input, err := json.Marshal(job)
	if err != nil {
		return Report{}, errStart.Wrap(err)
	}
	var stdout bytes.Buffer
	stderr := &head{}
	cmd := exec.CommandContext(ctx, self, Command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, stderr
	cmd.Env = append(os.Environ(), env...)
	// A group of its own keeps the terminal's Ctrl-C away from the worker: it
	// is for the parent to decide. Should the parent be killed, it dies too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := runWithEvents(cmd, job.Events, events); err != nil {
		if ctx.Err() != nil {
			return Report{}, ctx.Err()
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return Report{}, errStart.Wrap(err)
		}
		return Report{}, errCrash.New(exit.ProcessState, stderr)
	}
	var report Report
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		return Report{}, errCrash.New("an unreadable report", err)
	}
	return report, nil
}

// runWithEvents runs the command with a pipe as its descriptor 3.
func runWithEvents(cmd *exec.Cmd, want bool, events io.Writer) error {
	if !want {
		return cmd.Run()
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	cmd.ExtraFiles = []*os.File{write}
	err = cmd.Start()
	write.Close()
	if err != nil {
		return err
	}
	_, copyErr := io.Copy(events, read)
	return errors.Join(cmd.Wait(), copyErr)
}

// Main is the worker's side of Spawn.
func Main(stdin io.Reader, stdout io.Writer) error {
	var job Job
	if err := json.NewDecoder(stdin).Decode(&job); err != nil {
		return errJob.Wrap(err)
	}
	var events io.Writer
	if job.Events {
		pipe := os.NewFile(3, "events")
		buffer := bufio.NewWriterSize(pipe, 1<<16)
		defer pipe.Close()
		defer buffer.Flush()
		events = buffer
	}
	return json.NewEncoder(stdout).Encode(Run(context.Background(), job, events))
}

// head keeps the beginning of a dying process's output: a Go program's panic
// message and a C library's complaint come first.
type head struct{ text []byte }

func (h *head) Write(p []byte) (int, error) {
	const most = 2000
	h.text = append(h.text, p[:min(len(p), most-len(h.text))]...)
	return len(p), nil
}

// String gives the first lines as one.
func (h *head) String() string {
	lines := strings.Split(strings.TrimSpace(string(h.text)), "\n")
	if lines[0] == "" {
		return "it said nothing"
	}
	return strings.Join(lines[:min(len(lines), 3)], "; ")
}
