package sweep

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/windows"
	schedwindows "github.com/heddle-dmt/heddle/sched/windows"
)

// inWindowsOfTwo has the server of echoServer in windows of two requests.
const inWindowsOfTwo = `
programs:
  - server: echo.yaml
    client: [bash, -c, 'exec 3<>/dev/tcp/127.0.0.1/9000; for i in 1 2 3 4 5 6; do echo hello >&3; read -r x <&3; echo got $x; done']
grid: {cores: [1, 2]}
windows: {size: 2, timeout: 1ms, tasks: echo-rules.yaml}
repetitions: 2
`

// TestExperimentInWindows: the runs of an experiment are in windows, equal when they are repeated, and the table has the measures of
// windows. A client with one connection has one request in each window, since it waits for the reply; the greeting of no
// bytes with which the script looks whether the server is ready is no request.
func TestExperimentInWindows(t *testing.T) {
	x, err := loadServing(t, strings.ReplaceAll(inWindowsOfTwo, "echo-rules.yaml", writeRules(t)))
	if err != nil {
		t.Fatal(err)
	}
	summary, _ := sweepAll(t, x, false)
	if summary.Total != 4 || summary.Ran != 4 || summary.Failed != 0 || len(summary.Conflicts) != 0 {
		t.Fatalf("%+v", summary)
	}
	table, err := x.Table(Options{}, Selection{Measures: []string{"window_requests", "requests", "windows", "recorded_windows"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table.Rows {
		cells := map[string]string{}
		for i, column := range table.Head {
			cells[column.Key] = row[i]
		}
		if cells["window_requests"] != "6" || cells["requests"] != "6" || cells["recorded_windows"] == "-" || cells["windows"] == "-" {
			t.Errorf("%v", cells)
		}
	}
}

// writeRules writes the rules of a server in Perl.
func writeRules(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte("programs: [perl]\nports: [9000]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWindowsKeys: runs depend on the windows and on the contents of the file of schedules.
func TestWindowsKeys(t *testing.T) {
	rules := writeRules(t)
	schedules := filepath.Join(t.TempDir(), "schedules")
	key := func(field string) string {
		x, err := loadServing(t, strings.Replace(strings.ReplaceAll(inWindowsOfTwo, "echo-rules.yaml", rules), "timeout: 1ms", field, 1))
		if err != nil {
			t.Fatal(err)
		}
		return plan(t, x).Runs[0].Key
	}
	save := func(seed uint64) {
		s := schedwindows.NewStore()
		s.Seed = seed
		if err := windows.SaveStore(schedules, s); err != nil {
			t.Fatal(err)
		}
	}
	keys := map[string]string{}
	for _, field := range []string{"timeout: 1ms", "timeout: 2ms", "sync_only: true", "time_bubbles: 5"} {
		k := key(field)
		if other := keys[k]; other != "" {
			t.Errorf("%q and %q have one key", field, other)
		}
		keys[k] = field
	}
	save(1)
	first := key("schedules: " + schedules)
	save(2)
	if first == key("schedules: "+schedules) {
		t.Error("another file of schedules does not change the key")
	}
}

// TestWrongWindows: what cannot be is refused with the field.
func TestWrongWindows(t *testing.T) {
	rules := writeRules(t)
	for text, want := range map[string]string{
		"windows: {tasks: memcached}\n":                                                    "windows.size",
		"windows: {size: 2}\n":                                                             "windows.tasks",
		"windows: {size: 0, tasks: redis}\n":                                               "size",
		"windows: {size: 2, tasks: redis, reuse: often}\n":                                 "windows.reuse",
		"windows: {size: 2, tasks: redis, timeout: 2h}\n":                                  "windows.timeout",
		"windows: {size: 2, tasks: redis}\nfailures: {minimize: 1}\n":                      "failures.minimize",
		"windows: {size: 2, tasks: redis}\ngrid: {cores: 1, policy: kendo}\n":              "policy",
		"windows: {size: 2, tasks: redis}\ngrid: {cores: 1, model: tso}\n":                 "model",
		"windows: {size: 2, tasks: redis, window: 2}\n":                                    "window",
		"windows: {size: 2, tasks: nothing.yaml}\n":                                        "nothing.yaml",
		"windows: {size: 2, tasks: " + rules + ", schedules: none}\n":                      "windows.schedules",
		"windows: {size: 2, tasks: " + rules + "}\nmachine: {region: \"function:main\"}\n": "machine",
	} {
		x, err := loadServing(t, "programs: [{server: echo.yaml}]\n"+text)
		if err == nil {
			_, err = x.Plan(Options{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
