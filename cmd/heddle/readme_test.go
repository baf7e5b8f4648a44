package main

import (
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var updateReadme = flag.Bool("update", false, "rewrite the session in README.md")

const (
	readme       = "../../README.md"
	sessionBegin = "```console\n"
	sessionEnd   = "```\n"
)

// TestREADMESession runs the commands of the README's session in a copy of the
// repository's documents and compares what they print. Numbers and digests
// depend on the compiler, the libraries and the host's Debian; their places do
// not.
func TestREADMESession(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), sessionBegin)
	session, after, closed := strings.Cut(rest, sessionEnd)
	if !found || !closed {
		t.Fatal("README.md has no session")
	}
	got := replay(t, session)
	if *updateReadme {
		if err := os.WriteFile(readme, []byte(before+sessionBegin+got+sessionEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if plain(got) != plain(session) {
		t.Errorf("the session has changed; go test ./cmd/heddle -run README -update takes this in:\n%s", got)
	}
}

var numbers = regexp.MustCompile(`\b([0-9a-f]{32}|[0-9]+)\b`)

func plain(session string) string { return numbers.ReplaceAllString(session, "N") }

// replay runs the lines that begin with a prompt and returns the session as it
// would look.
func replay(t *testing.T, session string) string {
	t.Helper()
	dir := t.TempDir()
	copyTree(t, "../../docs", filepath.Join(dir, "docs"))
	copyTree(t, "../../configs", filepath.Join(dir, "configs"))
	installHeddle(t, filepath.Join(dir, "bin"))
	var b strings.Builder
	for _, line := range strings.Split(session, "\n") {
		command, found := strings.CutPrefix(line, "$ ")
		if !found {
			continue
		}
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		b.WriteString(line + "\n" + string(out))
	}
	return b.String()
}

// installHeddle puts the test binary, which is heddle under that name, into a
// folder.
func installHeddle(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, "heddle"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
