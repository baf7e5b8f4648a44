package strangers

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	corpusFile = "../../configs/strangers/programs.yaml"
	document   = "../../docs/strangers.md"
	published  = "../../docs/strangers.json"
)

// small is a corpus of one program, which copies its input.
const small = `
limits: {seconds: 1, memory: 200M}
enforced: 2
others: 2
recipes: {text: {files: {text: text}}}
programs: [{name: copy, packages: coreutils, language: C, threads: none, file: cat, arguments: [text], recipe: text, small: 1K, large: 2K}]
`

func loadText(t *testing.T, text string) (*Corpus, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "corpus.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(file)
}

// fake is a program that stands for heddle: a shell script that finds in dir the folder of the inputs and
// in program the command that follows --.
func fake(t *testing.T, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "heddle")
	text := `#!/bin/bash
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case "$1" in
  --mount) dir=${2%:/strangers} ;;
  --summary) echo '{"threads": 1, "cycles": 1}' >"$2" ;;
  esac
  shift
done
shift
cd "$dir"
` + body
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestStates: what a command of heddle does decides the state of its cell.
func TestStates(t *testing.T) {
	c, err := loadText(t, small)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		body  string
		state State
		text  string
	}{
		{`exec "$@"`, Works, `^1 threads; `},
		{`"$@" | tr a b`, Defect, `^run: another output than on the host$`},
		{`"$@"; exit 3`, Defect, `^run: status 3, on the host 0`},
		{`echo "heddle: no such thing" >&2; exit 125`, Refused, `^no such thing$`},
		{`echo "panic: bug: wrong" >&2; exit 2`, Defect, `^heddle crashed: panic: bug: wrong$`},
		{`while :; do :; done`, Limit, `^takes more than 1 s of processor time$`},
		{`printf -v x '%400000000s' ''; sleep 5`, Limit, `^takes more than 200M of memory$`},
	} {
		o := Options{Heddle: fake(t, x.body), Store: t.TempDir(), Columns: []string{"run"}}
		m, err := c.Run(context.Background(), o)
		if err != nil {
			t.Errorf("%s: %v", x.body, err)
			continue
		}
		if cell := m.Cells[0][0]; cell.State != x.state || !regexp.MustCompile(x.text).MatchString(cell.Text) {
			t.Errorf("%s: %s: %q", x.body, cell.State, cell.Text)
		}
	}
}

// TestStored: a cell is run again only if its definition has changed, it does not work, or all are to be run
// again.
func TestStored(t *testing.T) {
	c, err := loadText(t, small)
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	o := Options{Heddle: fake(t, `exec "$@"`), Store: t.TempDir(), Columns: []string{"run"}, Progress: &progress}
	count := func() int {
		t.Helper()
		progress.Reset()
		if _, err := c.Run(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		return strings.Count(progress.String(), "\n")
	}
	first, again := count(), count()
	o.Failed = true
	failed := count()
	o.Failed, o.Again = false, true
	all := count()
	o.Again = false
	c.Programs[0].Small++
	if changed := count(); first != 1 || again != 0 || failed != 0 || all != 1 || changed != 1 {
		t.Errorf("%d cells at first, %d again, %d that failed, %d when all are asked for, %d after a change", first, again, failed, all, changed)
	}
	o.Programs = []string{"move"}
	if _, err := c.Run(context.Background(), o); !errors.Is(err, errNames) {
		t.Errorf("a program that does not exist: %v", err)
	}
}

// TestInterrupted: an interrupted cell is not stored, and its process is killed.
func TestInterrupted(t *testing.T) {
	c, err := loadText(t, small)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	started := filepath.Join(t.TempDir(), "started")
	o := Options{Heddle: fake(t, `echo >`+started+`; exec sleep 100`), Store: t.TempDir(), Columns: []string{"run"}}
	go func() {
		for {
			if _, err := os.Stat(started); err == nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := c.Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if entries, err := os.ReadDir(o.Store); err != nil || len(entries) > 0 {
		t.Errorf("stored: %v, %v", entries, err)
	}
}

// TestWrongCorpora: errors name the field.
func TestWrongCorpora(t *testing.T) {
	for change, want := range map[string]string{
		"recipe: text":        `programs[0].recipe`,
		"name: copy":          `programs[0].name`,
		"{text: text}}}":      `recipes.text.files.text`,
		"packages: coreutils": `programs[0].packages`,
	} {
		name, _, _ := strings.Cut(change, ":")
		to := map[string]string{"recipe": "recipe: Prose", "name": "name: Copy", "{text": "{text: prose}}}", "packages": "packages: []"}[name]
		if _, err := loadText(t, strings.Replace(small, change, to, 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// TestCorpus: the corpus has thirty programs or more, in several languages, and the list of its packages can
// be read by internal/setup/packages.sh, which takes the lists of one line.
func TestCorpus(t *testing.T) {
	c, err := Load(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	languages := map[string]bool{}
	var packages []string
	for _, p := range c.Programs {
		languages[p.Language] = true
		packages = append(packages, p.Packages...)
	}
	if len(c.Programs) < 30 || len(languages) < 5 {
		t.Errorf("%d programs in %d languages", len(c.Programs), len(languages))
	}
	text, err := os.ReadFile(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`packages: *(\[[^]]*\]|[a-z0-9.+-]+)`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, strings.Fields(strings.NewReplacer("[", "", "]", "", ",", " ").Replace(m[1]))...)
	}
	if !slices.Equal(names, packages) {
		t.Errorf("packages.sh finds %v, and the corpus has %v", names, packages)
	}
}

// TestDocument: docs/strangers.md is what docs/strangers.json says, whose results are of the present corpus.
func TestDocument(t *testing.T) {
	c, err := Load(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Stored(t.TempDir(), published)
	if err != nil {
		t.Fatal(err)
	}
	var page, results bytes.Buffer
	if err := errors.Join(m.WriteDocument(&page), m.Publish(&results)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{document: page.String(), published: results.String()} {
		if text, err := os.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%s is stale: run `make strangers` and `go run ./paper-scripts/strangers --stored --write docs/strangers.md` (%v)", file, err)
		}
	}
}

// TestPublished: what is published is read back, and is used if the store has no result of the same definition.
func TestPublished(t *testing.T) {
	c, err := loadText(t, small)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Heddle: fake(t, `exec "$@"`), Store: t.TempDir(), Columns: []string{"run"}, Published: filepath.Join(t.TempDir(), "results.json")}
	m, err := c.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := errors.Join(m.Publish(&text), os.WriteFile(o.Published, text.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	read := func() *Cell {
		t.Helper()
		again, err := c.Stored(t.TempDir(), o.Published)
		if err != nil {
			t.Fatal(err)
		}
		return again.Cells[0][0]
	}
	if have := read(); have == nil || *have != *m.Cells[0][0] {
		t.Errorf("%+v is read back as %+v", m.Cells[0][0], have)
	}
	c.Programs[0].Small++
	if have := read(); have != nil {
		t.Errorf("a result of another definition: %+v", have)
	}
	if err := os.WriteFile(o.Published, []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Stored(t.TempDir(), o.Published); !errors.Is(err, errStore) {
		t.Errorf("a damaged file: %v", err)
	}
}
