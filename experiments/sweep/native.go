package sweep

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/internal/output"
)

// runNative runs a job's command on the host: same arguments, environment and
// standard input, in a fresh copy of the inputs.
func runNative(ctx context.Context, run Run, inputs string) (store.Native, error) {
	dir, err := os.MkdirTemp("", "heddle-native-")
	if err != nil {
		return store.Native{}, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(filepath.Join(dir, "inputs"), os.DirFS(inputs)); err != nil {
		return store.Native{}, err
	}
	program, err := findProgram(run.Job.Args[0], run.Job.Options)
	if err != nil {
		return store.Native{}, err
	}
	stdout, stderr := output.NewMeter(), output.NewMeter()
	cmd := exec.CommandContext(ctx, program, run.Job.Args[1:]...)
	cmd.Args[0] = run.Job.Args[0]
	cmd.Env, cmd.Dir = run.Job.Options.Config().Env, filepath.Join(dir, "inputs")
	var kept output.Filtered
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if len(run.Job.Filter) > 0 {
		cmd.Stdout = io.MultiWriter(stdout, &kept)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if run.Job.Stdin != "" {
		file, err := os.Open(run.Job.Stdin)
		if err != nil {
			return store.Native{}, err
		}
		defer file.Close()
		cmd.Stdin = file
	} else {
		cmd.Stdin = bytes.NewReader(nil)
	}
	start := time.Now()
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		return store.Native{}, errors.Join(err, ctx.Err())
	}
	var compared *output.Sum
	if filter := run.Job.Filter; len(filter) > 0 {
		sum, err := kept.Sum(ctx, filter)
		if err != nil {
			return store.Native{}, err
		}
		compared = &sum
	}
	return store.Native{
		Compared: compared,
		ExitCode: exitCode(cmd.ProcessState), Stdout: stdout.Sum(), Stderr: stderr.Sum(), Seconds: time.Since(start).Seconds(),
	}, nil
}

// exitCode is the status as heddle gives it, 128+n after signal n.
func exitCode(state *os.ProcessState) int {
	if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// hasNative reports whether the run is compared with one on the host: with a root of its own the
// guest's programs are not the host's, and no server is started on the host.
func (r Run) hasNative(x *Experiment) bool {
	return x.Native && x.Machine.RootFS == "" && r.server == nil
}
