package strangers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	helgrindReport = `<?xml version="1.0"?><valgrindoutput>
<error><kind>Race</kind>
<stack><frame><ip>0x109151</ip><obj>/bin/p</obj></frame></stack>
<stack><frame><ip>0x10915A</ip><obj>/bin/p</obj></frame></stack>
<stack><frame><ip>0x1</ip><obj>/bin/q</obj></frame></stack></error>
<error><kind>UnlockUnlocked</kind><stack><frame><ip>0x109999</ip><obj>/bin/p</obj></frame></stack></error>
</valgrindoutput>`
	drdReport = `<?xml version="1.0"?><valgrindoutput>
<error><kind>ConflictingAccess</kind>
<stack><frame><ip>0x109151</ip><obj>/bin/p</obj></frame></stack>
<other_segment_start><stack><frame><ip>0x109777</ip><obj>/bin/p</obj></frame></stack></other_segment_start></error>
<error><kind>ConflictingAccess</kind><stack><frame><ip>0x4911111</ip><obj>/lib/libc.so.6</obj></frame></stack></error>
</valgrindoutput>`
	heddleReport = `{"races": [
{"first": {"stack": [{"image": "/bin/p", "image_address": 4433}]}, "second": {"stack": [{"image": "/bin/p", "image_address": 8192}]}},
{"witness": {"command": "x"}, "first": {"stack": [{"image": "/bin/p", "image_address": 4442}]}, "second": {"stack": []}}]}`
)

// TestDetections: instructions are told from each other by file and place in a page, and each report counts its own kind of
// error. The places are those of the texts above.
func TestDetections(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report")
	if err := os.WriteFile(file, []byte(heddleReport), 0o600); err != nil {
		t.Fatal(err)
	}
	heddle, err := readHeddle(file)
	if err != nil {
		t.Fatal(err)
	}
	x := Comparison{Program: "p", By: []Detection{*heddle, {Instructions: map[string]bool{}}, {Instructions: map[string]bool{}}}}
	for n, text := range []string{1: helgrindReport, 2: drdReport} {
		if n > 0 {
			if err := x.By[n].addValgrind(strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n, want := range []string{"1 and 1 predicted (3)", "1 (2)", "2 (1)"} {
		if got := x.By[n].text(); got != want {
			t.Errorf("%s: %s, want %s", detectors[n], got, want)
		}
	}
	for n, want := range [][]string{{"p+...000"}, nil, nil} {
		if got := x.alone(n); !slices.Equal(got, want) {
			t.Errorf("%s alone: %q, want %q", detectors[n], got, want)
		}
	}
	if err := (&Detection{}).addValgrind(strings.NewReader("<valgrindoutput><error>")); err == nil {
		t.Error("a report that is cut is read")
	}
	var b strings.Builder
	if err := WriteComparisons(&b, []Comparison{x}, true); err != nil || !strings.Contains(b.String(), "| p | 1 and 1 predicted (3) | 1 (2) | 2 (1) | 1, 0, 0 |") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
