package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/casefile"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// TestReports: the lists of events in testdata/reports.txt, whose head describes them, give the
// reports after their lines ----.
func TestReports(t *testing.T) {
	folder := t.TempDir()
	linkImages(t, folder)
	for _, c := range casefile.Read(t, "testdata/reports.txt") {
		command, list, _ := strings.Cut(c.Input, "\n")
		got := strings.ReplaceAll(strings.TrimSpace(reportOf(t, command, list, folder)), folder, "/folder")
		if got != c.Want {
			t.Errorf("%s:\n%s\nwant\n%s", c.Name, got, c.Want)
		}
	}
}

// reportOf makes the report of a list of events, with the options that a line has.
func reportOf(t *testing.T, command, list, folder string) string {
	t.Helper()
	o := report.Options{Benign: report.Mark}
	var asJSON, changed, cut bool
	for _, word := range strings.Fields(command) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "hb", "schedule":
			o.Order = report.Modes[name]
		case "keep", "mark", "prune":
			o.Benign = report.Benign(name)
		case "library":
			o.Library = true
		case "order":
			o.Words = report.OrderWords
		case "verbose":
			o.Verbose = true
		case "suppress":
			o.Rules = readRules(t, folder, strings.ReplaceAll(value, ";", "\n"))
		case "limit", "since":
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			if name == "limit" {
				o.Limit = n
			} else {
				o.Since = uint64(n)
			}
		case "data":
			addr, size, _ := (&eventList{t: t}).operand(value)
			o.Data = append(o.Data, report.Range{Start: arch.Addr(addr), End: arch.Addr(addr + size)})
		case "code":
			pc := (&eventList{t: t}).place(value)
			o.Code = append(o.Code, report.Range{Start: pc, End: pc + 1})
		case "json":
			asJSON = true
		case "changed":
			changed = true
		case "cut":
			cut = true
		default:
			t.Fatalf("%q is no option", word)
		}
	}
	file := writeTrace(t, list, folder, changed, cut)
	in, err := trace.NewReader("trace", bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := report.Make("run.trace", in, o)
	if err != nil {
		return err.Error()
	}
	if asJSON {
		return string(r.JSON())
	}
	var out strings.Builder
	if err := r.Text(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func readRules(t *testing.T, folder, text string) []*report.Rule {
	t.Helper()
	file := filepath.Join(folder, "rules")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	rules, err := report.ReadRules([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestWrongRules: a line without a rule is refused with its file and number.
func TestWrongRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules")
	for rule, want := range map[string]string{
		"fun:":       "it has no pattern",
		"top:obj:":   "it has no pattern",
		"src:":       "it has no pattern",
		"src::7":     "it has no pattern",
		"race:x":     "it begins with none of fun:, obj:, src:, top:",
		"top:top:x":  "it begins with none of fun:, obj:, src:, top:",
		"work":       "it begins with none of fun:, obj:, src:, top:",
		"src:a.c:0":  `"0" is no number of a line`,
		"src:a.c:1x": `"1x" is no number of a line`,
	} {
		if err := os.WriteFile(file, []byte("# rules\n\nfun:good\n"+rule+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := report.ReadRules([]string{file})
		if want := file + ":4: " + rule + " is no suppression: " + want; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := report.ReadRules([]string{file + ".none"}); err == nil || !strings.Contains(err.Error(), "rules.none cannot be read") {
		t.Error(err)
	}
}
