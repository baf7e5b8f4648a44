package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStreams runs heddle with standard streams of all kinds, by a shell that
// sets them up. BIN stands for "heddle run --quiet".
func TestStreams(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, script   string
		status         int
		stdout, stderr string
	}{
		{"file", `BIN -- cat < input`, 0, "some text\n", ""},
		{"position", `(read x; BIN -- cat) < lines`, 0, "second\nthird\n", ""},
		{"pipe", `cat input | BIN -- cat`, 0, "some text\n", ""},
		{"slow pipe", `(echo a; echo b) | BIN -- sh -c 'read x; read y; echo $y $x; read z || echo end'`, 0, "b a\nend\n", ""},
		{"unread pipe", `yes | BIN -- head -n 1`, 0, "y\n", ""},
		{"null", `BIN -- cat < /dev/null`, 0, "", ""},
		{"closed input", `BIN -- cat <&-`, 1, "", "cat: -: Bad file descriptor\ncat: closing standard input: Bad file descriptor\n"},
		{"folder", `BIN -- cat < .`, 1, "", "cat: -: Is a directory\n"},
		{"both in one", `BIN -- sh -c 'echo out; echo err >&2' 2>&1`, 0, "out\nerr\n", ""},
		{"broken pipe", `set -o pipefail; BIN -- yes 2>/dev/null | head -n 2`, 141, "y\ny\n", ""},
		{"broken pipe ignored", `(trap '' PIPE; BIN -- seq 100000 2>/dev/null; echo $? >&2) | true`, 0, "", "141\n"},
		{"full disk", `BIN -- env echo x > /dev/full`, 1, "", "echo: write error: No space left on device\n"},
		{"full disk for errors", `BIN -- sh -c 'echo x >&2' 2> /dev/full`, 1, "", ""},
		{"summary on a full disk", `BIN --summary /dev/full -- true`, 125, "", "heddle: cannot write /dev/full: no space left on device\n"},
		{"summary in a folder", `BIN --summary . -- true`, 125, "", "heddle: cannot write .: is a directory\n"},
		{"log on a full disk", `BIN --event-log /dev/full -- true`, 125, "", "heddle: cannot write /dev/full: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "input"), []byte("some text\n"), 0o644)
			writeFile(t, filepath.Join(dir, "lines"), []byte("first\nsecond\nthird\n"), 0o644)
			o := execute(t, dir, nil, "bash", "-c", strings.ReplaceAll(c.script, "BIN", bin+" run --quiet"))
			exact := o.stderr == c.stderr || strings.HasSuffix(c.stderr, " ") && strings.HasPrefix(o.stderr, c.stderr) && strings.Count(o.stderr, "\n") == 1
			if o.status != c.status || o.stdout != c.stdout || !exact {
				t.Errorf("%s: want status %d, %q and %q, got %v", c.script, c.status, c.stdout, c.stderr, o)
			}
		})
	}
}
