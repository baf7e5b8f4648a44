package find

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
)

var (
	errNative = errs.Define("find-native",
		"cannot run {program} natively",
		"With --native the program runs on the host before the search, so that its output can be compared; the rest of the sentence says what failed.",
		"Leave --native out, or name the right output with --expect.")
	errNativeDiffers = errs.Define("find-native-differs",
		"{program} does not print the same natively in two runs",
		"With --native the output of the program on the host is the right one. Here it depends on the order of threads, on time or on other things that change between runs.",
		"Leave --native out, or name the right output with --expect.")
	errNativeStatus = errs.Define("find-native-status",
		"{program} exits with status {status} natively, and with {emulated} under heddle",
		"With --native a run under heddle is to be like one on the host, and the program finds other things here: files, time, processors or system calls.",
		"Leave --native out, or make the program find the same.")
)

// nativeRun is a run of the program on the host.
type nativeRun struct {
	stdout []byte
	status int
}

// expectNative makes the output of the program on the host the right one, if two runs there print the same.
func (s *search) expectNative(ctx context.Context) error {
	if !s.options.Native || s.native != nil {
		return nil
	}
	program := s.config.Args[0]
	var runs [2]nativeRun
	for i := range runs {
		var err error
		if runs[i], err = s.runNatively(ctx); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil {
			return errNative.Wrap(err, program)
		}
	}
	if !bytes.Equal(runs[0].stdout, runs[1].stdout) || runs[0].status != runs[1].status {
		return errNativeDiffers.New(program)
	}
	s.native = &runs[0]
	s.options.Expect = append([]byte{}, runs[0].stdout...)
	s.outputs.expect, s.outputs.native = s.options.Expect, true
	return nil
}

// runNatively runs the program on the host.
func (s *search) runNatively(ctx context.Context) (r nativeRun, err error) {
	c := exec.CommandContext(ctx, s.config.Args[0], s.config.Args[1:]...)
	c.Env, c.Dir = s.environment, s.config.Dir
	if c.Path, err = lookUp(s.config.Args[0], s.config.Dir); err != nil {
		return r, err
	}
	c.Err = nil
	var stdout bytes.Buffer
	c.Stdout = &stdout
	if s.input != nil {
		c.Stdin = s.input.reader()
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	err = c.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
	case !errors.As(err, &ended) || !ended.Exited(): // a signal has killed it, or it did not start
		return r, err
	}
	return nativeRun{stdout.Bytes(), c.ProcessState.ExitCode()}, nil
}

// lookUp finds a program on the host as the guest does, from a folder.
func lookUp(name, dir string) (string, error) {
	if filepath.Base(name) == name {
		return exec.LookPath(name)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	return name, nil
}

// allowsNative returns an error if the program on the host is another one, or has other files.
func allowsNative(c *machine.Config) error {
	if c.RootFS != "" || len(c.Mounts) > 0 {
		return errOption.New("--native with a root or mounts of its own")
	}
	return nil
}

// checkNativeStatus returns an error if the exit status of the undisturbed run is not that on the host.
func (s *search) checkNativeStatus(status int) error {
	if s.native != nil && s.native.status != status {
		return errNativeStatus.New(s.config.Args[0], s.native.status, status)
	}
	return nil
}
