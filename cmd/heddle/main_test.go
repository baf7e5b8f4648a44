package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
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
