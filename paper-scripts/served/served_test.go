package served

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/paper-scripts/study/studytest"
	"github.com/heddle-dmt/heddle/sched/windows"
	"github.com/spf13/pflag"
)

// counting is a server in Perl that answers each line with the number of lines that it has had, and a client in the shell's
// own language, whose program is another one.
const counting = `
port: 9000
values: {lines: "8"}
files:
  - name: server.pl
    content: |
      use Socket;
      my ($s, $c, $n);
      $SIG{TERM} = sub { exit 0 };
      socket($s, PF_INET, SOCK_STREAM, 0) && bind($s, sockaddr_in({port}, INADDR_LOOPBACK)) && listen($s, 10) or die;
      while (accept($c, $s)) { while (<$c>) { $n++; syswrite($c, "$n\n") } }
command: [perl, server.pl]
client: [bash, -c, 'exec 3<>/dev/tcp/127.0.0.1/9000; for i in $(seq {lines}); do echo hello >&3; read -r x <&3; echo "answer $x"; done']
replies: ["^answer {lines}$"]
`

const rulesOfCounting = "programs: [perl]\n"

const settingsOfCounting = `
runs: 2
loads:
  - {name: counting, server: counting.yaml, tasks: RULES, window: 2, cores: 3, hybrid: true, count: lines, share: 2, text: lines}
  - {name: absent, server: absent.yaml, tasks: RULES, window: 2, cores: 3, text: nothing}
rows:
  - {place: Table 3, load: counting, what: sync, value: sync_outputs, reported: "yes"}
  - {place: Table 3, load: counting, what: states, value: hybrid_states, reported: "yes"}
  - {place: Figure 11, load: counting, what: throughput, value: sync_throughput}
  - {place: Figure 12, load: counting, what: waits, why: there are none}
  - {place: Table 2, load: absent, what: races, value: races}
`

// script is a script with the plan of a folder's settings.
func script(t *testing.T, settings string) *study.Script {
	t.Helper()
	dir := t.TempDir()
	absent := strings.Replace(counting, "port:", "packages: [none]\nneeds: [/usr/bin/heddle-none]\nport:", 1)
	for name, text := range map[string]string{
		"counting.yaml": counting, "absent.yaml": absent, "rules.yaml": rulesOfCounting,
		"servers.yaml": strings.ReplaceAll(settings, "RULES", filepath.Join(dir, "rules.yaml")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &study.Script{Name: "test", Artefacts: []study.Artefact{{Name: "servers", Config: filepath.Join(dir, "servers.yaml"), Plan: Plan}}}
}

func flags(f *pflag.FlagSet) {
	f.Int("runs", 0, "")
	f.StringSlice("only", nil, "")
}

// TestRows: a server with one thread has equal windows on all machines, and gives the client its replies more slowly in
// windows. A server that the host does not have, and a row without a value, are not measured and say why.
func TestRows(t *testing.T) {
	rows := studytest.Measured(t, script(t, settingsOfCounting), flags, t.TempDir(), "servers")
	ours := map[string]string{}
	for _, r := range rows {
		ours[r["what"]] = r["ours"]
		if reason := r["remark"]; r["ours"] == "-" && !strings.HasPrefix(reason, "not measured: ") {
			t.Errorf("%v has no reason", r)
		}
	}
	if ours["sync"] != "yes" || ours["states"] != "yes" || ours["waits"] != "-" || ours["races"] != "-" {
		t.Errorf("%v", ours)
	}
	if v := studytest.Number(t, ours["throughput"]); v <= 0 || v >= 1 {
		t.Errorf("throughput %v", v)
	}
}

// TestWrongSettings: the first field that is wrong is named.
func TestWrongSettings(t *testing.T) {
	for old, wrong := range map[string][2]string{
		"runs: 2":         {"runs: 0", "runs"},
		"window: 2":       {"window: 0", "loads[0].window"},
		"cores: 3":        {"cores: 99", "loads[0].cores"},
		"count: lines":    {"count: words", "loads[0].count"},
		"value: races":    {"value: bugs", "rows[4].value"},
		"load: absent":    {"load: nobody", "rows[4].load"},
		"why: there are":  {"reported: there are", "rows[3].why"},
		"share: 2, text:": {"share: 2, values: {words: \"1\"}, text:", "loads[0].values"},
	} {
		s := script(t, strings.Replace(settingsOfCounting, old, wrong[0], 1))
		err := s.Run(t.Context(), &strings.Builder{}, []string{"--store", t.TempDir(), "servers"}, flags)
		if err == nil || !strings.Contains(err.Error(), wrong[1]) {
			t.Errorf("%s: %v", wrong[0], err)
		}
	}
}

// TestAdmittedBy: a window that is made of a precondition is admitted by it, and one with another byte, or another pointer, is not.
func TestAdmittedBy(t *testing.T) {
	only := func(list ...byte) (v windows.Values) {
		for _, b := range list {
			v[b/64] |= 1 << (b % 64)
		}
		return v
	}
	p := windows.Precondition{
		Patterns:  []windows.Pattern{{only('G'), only('a', 'b')}},
		Registers: 7,
		Pointers:  []windows.Pointer{{Process: 5, At: 0x1ffc, By: windows.Fixed, Value: 0x70000, Not: []uint64{0}}},
		Hidden:    []windows.HiddenState{{Process: 5, At: 0x70000, By: 0, Pattern: windows.Pattern{only(1), only(200, 201), only(3, 250)}}},
		Joint: &windows.Joint{
			Bytes: []windows.StateByte{{Process: 5, At: 0x70001, By: 0}, {Process: 5, At: 0x70002, By: 0}},
			Refuses: func(v []byte) []int { // a counter is less than the next
				if v[0] < v[1] {
					return nil
				}
				return []int{0, 1}
			},
		},
	}
	s := windows.NewStore()
	s.Add(0, windows.Schedule{Exact: 1, Precondition: p})
	a := admittedBy(&p)
	if s.Matching(a) != 1 || string(a.Bytes[0]) != "Ga" {
		t.Errorf("%d schedules match %q", s.Matching(a), a.Bytes)
	}
	other := *a
	other.Bytes = [][]byte{[]byte("Gc")}
	if s.Matching(&other) != 0 {
		t.Error("another byte is admitted")
	}
	other = *a
	other.Registers = 8
	if s.Matching(&other) != 0 {
		t.Error("another register is admitted")
	}
	if text := timeToCheck(s); text == "-" {
		t.Error("no time")
	}
	if text := timeToCheck(windows.NewStore()); text != "-" {
		t.Errorf("without preconditions the time is %s", text)
	}
}

// TestValuesAreUnique: a value is made by one measurement.
func TestValuesAreUnique(t *testing.T) {
	var all []string
	for _, m := range measurements() {
		for _, v := range m.values {
			if slices.Contains(all, v) {
				t.Errorf("%s is made twice", v)
			}
			all = append(all, v)
		}
	}
}
