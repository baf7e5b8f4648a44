package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// endAfter runs a command until it has written this number of lines, sends it a signal,
// and returns all that it has written.
func endAfter(t *testing.T, dir string, lines int, with os.Signal, command ...string) (stdout, stderr string, state *os.ProcessState) {
	t.Helper()
	slots <- struct{}{}
	defer func() { <-slots }()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	r := bufio.NewReader(out)
	for range lines {
		line, err := r.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			break
		}
	}
	_ = cmd.Process.Signal(with)
	_, _ = io.Copy(&all, r)
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return all.String(), complaints.String(), cmd.ProcessState
}

// pairsUpTo is the output of the program pairs.
func pairsUpTo(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "begin %d\nend %d\n", i, i)
	}
	return b.String()
}

// numbers is the content of its file.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d\n", i)
	}
	return b.String()
}

const pairs = 150

// TestFrostEnds: a run under Frost that is killed, at whatever time, has written
// whole epochs of its output, and to no file; one that is
// interrupted has also written its files and its report up to there.
func TestFrostEnds(t *testing.T) {
	program := compile(t, "pairs")
	for _, with := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		for _, after := range []int{0, 1, 2, 31, 120} {
			t.Run(fmt.Sprintf("%v after %d lines", with, after), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				args := []string{
					"frost", "run", "--mount=" + dir + ":" + dir + ":rw",
					"--report=" + filepath.Join(dir, "report"), "--", program, fmt.Sprint(pairs), filepath.Join(dir, "file"),
				}
				ends := endsOfEpochs(t, dir, args)
				stdout, stderr, state := endAfter(t, dir, after, with, append([]string{bin}, args...)...)
				n := strings.Count(stdout, "end")
				if !strings.HasPrefix(pairsUpTo(pairs), stdout) || !slices.Contains(ends, len(stdout)) {
					t.Errorf("%q, which is no whole epochs: they end at %d", shorten(stdout), ends)
				}
				file, _ := os.ReadFile(filepath.Join(dir, "file"))
				ws := state.Sys().(syscall.WaitStatus)
				switch {
				case n == pairs: // it was over
				case with == syscall.SIGKILL:
					if !ws.Signaled() || len(file) > 0 {
						t.Errorf("%v; the file has %q", state, file)
					}
				default:
					interruptedFrost(t, dir, n, string(file), stderr, state.ExitCode())
				}
			})
		}
	}
}

// endsOfEpochs are the sizes of the output of a run of the program pairs at the ends of its epochs.
func endsOfEpochs(t *testing.T, dir string, args []string) []int {
	t.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	stdout := string(out)
	text, err := os.ReadFile(filepath.Join(dir, "report"))
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Epochs []struct {
			Committed bool `json:"committed"`
			Replicas  []struct {
				Output int `json:"output_bytes"`
			} `json:"replicas"`
		} `json:"epochs"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	ends, at := []int{0}, 0
	for _, e := range report.Epochs {
		if e.Committed {
			at += e.Replicas[0].Output
			ends = append(ends, at)
		}
	}
	if stdout != pairsUpTo(pairs) || at != len(stdout) {
		t.Fatalf("%q; the epochs have %d bytes", shorten(stdout), at)
	}
	for _, name := range []string{"report", "file"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return ends
}

// interruptedFrost checks the results of a run that wrote n pairs and was
// interrupted then.
func interruptedFrost(t *testing.T, dir string, n int, file, stderr string, status int) {
	t.Helper()
	if n == 0 && stderr == "" {
		return // the signal came before heddle waits for it
	}
	if status != 128+int(syscall.SIGINT) || !strings.Contains(stderr, "interrupted after the last epoch that was committed") {
		t.Errorf("status %d, %q", status, stderr)
	}
	if file != numbers(n) && file != numbers(n+1) && file != numbers(max(0, n-1)) {
		t.Errorf("%d pairs, and the file has %q", n, shorten(file))
	}
	text, err := os.ReadFile(filepath.Join(dir, "report"))
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Committed int                        `json:"committed"`
		Epochs    []struct{ Committed bool } `json:"epochs"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	committed := 0
	for _, e := range report.Epochs {
		if e.Committed {
			committed++
		}
	}
	if committed != report.Committed || n > 0 && committed == 0 {
		t.Errorf("%d epochs, %d of them committed, for %d pairs", report.Committed, committed, n)
	}
}
