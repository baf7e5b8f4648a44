package setup

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNoticesNameEveryModule: NOTICES.md lists the Go modules that the programs are built from, and
// no others.
func TestNoticesNameEveryModule(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/heddle", "./cmd/heddle-plot", "./paper-scripts/...")
	list.Dir = moduleRoot
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	used := slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
	text, err := os.ReadFile(moduleRoot + "/NOTICES.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, m := range regexp.MustCompile(`(?m)^\| ((?:[a-z.]+\.[a-z0-9]+)/\S+) \| \S.* \|$`).FindAllStringSubmatch(string(text), -1) {
		named = append(named, m[1])
	}
	if !slices.Equal(named, used) {
		t.Errorf("NOTICES.md names\n%s\nthe programs are built from\n%s", strings.Join(named, "\n"), strings.Join(used, "\n"))
	}
}
