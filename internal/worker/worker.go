// Package worker carries out requests in fresh processes of heddle, so that a crash in one of them
// affects nothing else.
//
// A worker is heddle's own program file, started with a hidden command. It reads a request as JSON
// from standard input and writes a reply as JSON to standard output. Which requests there are,
// other packages define.
package worker

import (
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

var (
	errCrash = errs.Define("worker-crashed",
		"the worker process of a run ended with {status}: {text}",
		"heddle crashed during this run, or something on the host (the out-of-memory killer, an operator) ended its process.",
		"Repeat the run with `heddle run`; the sweep's other runs are not affected. If it crashes again it is a defect: report it with the sentence.")
	errStart = errs.Define("worker-not-started",
		"cannot start a worker process",
		"The host refused another process or descriptors for it, or heddle's own program file was moved or replaced while it ran; the rest of the sentence says which.",
		"Check limits on processes (ulimit -u), open files (ulimit -n) and memory, and start heddle again.")
	errRequest = errs.Define("worker-job",
		"the worker cannot read its job",
		"The hidden worker command was called by hand, or by another version of heddle.",
		"Use heddle run or heddle experiment run.")
)

// EventsDescriptor is the descriptor of a worker to which it may write events.
const EventsDescriptor = 3

// Spawn has a fresh process carry out a request, and decodes its reply. The process is heddle with
// a hidden command and extra environment variables. If events is not nil, it gets the text that the
// process writes to EventsDescriptor. The error says that the process failed, not that the request did.
func Spawn(ctx context.Context, command string, request, reply any, env []string, events io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return errStart.Wrap(err)
	}
	input, err := json.Marshal(request)
	if err != nil {
		return errStart.Wrap(err)
	}
	var stdout bytes.Buffer
	stderr := &head{}
	cmd := exec.CommandContext(ctx, self, command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, stderr
	cmd.Env = append(os.Environ(), env...)
	// A group of its own keeps the terminal's Ctrl-C away from the worker: it
	// is for the parent to decide. Should the parent be killed, it dies too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := runWithEvents(cmd, events); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return errStart.Wrap(err)
		}
		return errCrash.New(exit.ProcessState, stderr)
	}
	if err := json.Unmarshal(stdout.Bytes(), reply); err != nil {
		return errCrash.New("an unreadable report", err)
	}
	return nil
}

// runWithEvents runs the command, with a pipe as its EventsDescriptor if events is not nil.
func runWithEvents(cmd *exec.Cmd, events io.Writer) error {
	if events == nil {
		return cmd.Run()
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	cmd.ExtraFiles = []*os.File{write} // the first is EventsDescriptor
	err = cmd.Start()
	write.Close()
	if err != nil {
		return err
	}
	_, copyErr := io.Copy(events, read)
	return errors.Join(cmd.Wait(), copyErr)
}

// Serve is the worker's side of Spawn: it reads the request, carries it out and writes the reply.
func Serve[Request, Reply any](stdin io.Reader, stdout io.Writer, carryOut func(Request) Reply) error {
	var request Request
	if err := json.NewDecoder(stdin).Decode(&request); err != nil {
		return errRequest.Wrap(err)
	}
	return json.NewEncoder(stdout).Encode(carryOut(request))
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
