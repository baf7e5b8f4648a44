package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInterruptionIsOneSentence interrupts a command that has no sentence of its own for
// it.
func TestInterruptionIsOneSentence(t *testing.T) {
	dir := t.TempDir()
	recorded, schedule := filepath.Join(dir, "trace"), filepath.Join(dir, "schedule")
	if err := os.WriteFile(schedule, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	if status := Main([]string{"record", "-q", "--pt", "-o", recorded, "--", "false"}, nil, &out, &problems); status != 1 {
		t.Fatalf("status %d: %s", status, problems.String())
	}
	problems.Reset()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(interruption{syscall.SIGTERM})
	a := &app{stdout: &out, stderr: &problems}
	if status := a.execute(ctx, []string{"reproduce", "-o", schedule, recorded}); status != 128+int(syscall.SIGTERM) {
		t.Errorf("status %d", status)
	}
	if got := problems.String(); got != "heddle: interrupted\n" {
		t.Errorf("it says %q", got)
	}
	if text, err := os.ReadFile(schedule); string(text) != "old" || err != nil {
		t.Errorf("the file that was there is now %q, %v", text, err)
	}
}

// TestStuckOutputEndsWithASignal: no process reads the program's output.
func TestStuckOutputEndsWithASignal(t *testing.T) {
	path, err := exec.LookPath("heddle")
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	cmd := exec.Command(path, "run", "--", "yes")
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A write is under way when the pipe is full.
	capacity, err := unix.FcntlInt(write.Fd(), unix.F_GETPIPE_SZ, 0)
	for full := 0; full < capacity && err == nil; runtime.Gosched() {
		full, err = unix.IoctlGetInt(int(read.Fd()), unix.TIOCINQ)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 128+int(syscall.SIGTERM) {
		t.Errorf("status %d", got)
	}
}
