package sweeps

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// execute runs heddle experiment with arguments, and returns what it prints and its error.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	p := &Program{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Version: "test",
		Say: func(string, ...any) {}, SetStatus: func(int) {}, Interrupted: func(context.Context) (int, bool) { return 0, false },
		OfCommands: cobra.NoArgs, OneFile: cobra.ExactArgs(1), Files: cobra.MinimumNArgs(1),
	}
	c := p.Command()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCommandsThatRunNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "e.yaml")
	if _, err := execute(t, "init", file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(t.TempDir(), "x.sqlite")
	// Programs of the example may not be there.
	if err := os.WriteFile(file, bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("[pigz, "), []byte("[echo, ")), []byte("[sort, "), []byte("[echo, ")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"validate", file}, "18 runs of pigz, sort"},
		{[]string{"plan", "--store", store, file}, "18 runs, 0 stored"},
		{[]string{"plan", "--store", store, "--shard", "2/18", "--json", file}, `"total":1,"stored":0`},
	} {
		if out, err := execute(t, c.args...); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%v: %q, %v", c.args, out, err)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--shard", "0/3", file}, "the shard I from 1 to N"},
		{[]string{"run", "--runs", "3-1", file}, "numbers of runs from 1"},
		{[]string{"run", "--slurm", "--shard", "1/3", file}, "--slurm and --shard cannot be given together"},
		{[]string{"run", "--slurm", "--array-size", "0", file}, "--array-size is 0; allowed: at least 1"},
		{[]string{"run", "--slurm", "--concurrent", "-1", file}, "--concurrent is -1; allowed: at least 0"},
		{[]string{"table", "--format", "html", file}, `--format is "html"; allowed: text, csv, latex`},
		{[]string{"plot", "--format", "gif", file}, `--format is "gif"; allowed: svg, pdf, png`},
		{[]string{"plot", "--store", store, file}, "there is no result store"},
		{[]string{"export", "--store", store, file}, "there is no result store"},
		{[]string{"fly"}, "unknown command"},
	} {
		if _, err := execute(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}
