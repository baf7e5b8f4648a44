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

var updateSessions = flag.Bool("update", false, "rewrite the sessions in the documents")

// documentsWithSessions have commands with their output, between these marks.
var documentsWithSessions = []string{"README.md", "docs/tutorial.md"}

const (
	sessionBegin = "```console\n"
	sessionEnd   = "```\n"
)

// TestSessionsInDocuments runs the commands of each document's sessions, all of one
// document in one copy of the repository's documents, and compares their output. Numbers
// and digests depend on the compiler, the libraries and the host's Debian; their places do
// not.
func TestSessionsInDocuments(t *testing.T) {
	for _, name := range documentsWithSessions {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("../..", name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := runSessions(t, string(text))
			if *updateSessions {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if withoutNumbers(got) != withoutNumbers(string(text)) {
				t.Errorf("a session has changed; go test ./cmd/heddle -run Sessions -update takes this in:\n%s", got)
			}
		})
	}
}

// runSessions returns a document with the output that its commands print now.
func runSessions(t *testing.T, text string) string {
	t.Helper()
	dir := sessionFolder(t)
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, sessionBegin)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		session, after, closed := strings.Cut(rest, sessionEnd)
		if !closed {
			t.Fatal("a session has no end")
		}
		b.WriteString(sessionBegin + runSession(t, dir, session) + sessionEnd)
		text = after
	}
}

var numbers = regexp.MustCompile(`\b([0-9a-f]{32}|[0-9]+)\b`)

// columns are the spaces between the columns of a table, whose widths follow the numbers.
var columns = regexp.MustCompile(`  +`)

// trailing is space at the end of a line.
var trailing = regexp.MustCompile(`(?m) +$`)

// withoutNumbers returns a text without the parts that depend on the host.
func withoutNumbers(text string) string {
	return columns.ReplaceAllString(numbers.ReplaceAllString(trailing.ReplaceAllString(text, ""), "N"), "  ")
}

// sessionFolder makes a folder with the files of the repository that the sessions use.
func sessionFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyTree(t, "../../docs", filepath.Join(dir, "docs"))
	copyTree(t, "../../configs", filepath.Join(dir, "configs"))
	installHeddle(t, filepath.Join(dir, "bin"))
	return dir
}

// runSession runs the lines that begin with a prompt and returns the session as it
// would look.
func runSession(t *testing.T, dir, session string) string {
	t.Helper()
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
		b.WriteString(line + "\n" + trailing.ReplaceAllString(string(out), ""))
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
