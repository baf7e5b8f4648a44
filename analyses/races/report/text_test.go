package report_test

import (
	"bytes"
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
		if got := strings.TrimSpace(reportOf(t, command, list, folder)); got != c.Want {
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
