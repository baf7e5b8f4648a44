package frost_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

// TestProcessesAreClean: a program whose threads and processes wait for each other in system calls, and
// keep time stamps of files, prints the same as natively, and no replica differs.
func TestProcessesAreClean(t *testing.T) {
	bin := gcctest.File(t, "testdata/processes.c", "-pthread")
	t.Chdir(t.TempDir()) // for the native run's files
	want, _ := natively(t, []string{bin})
	for seed := 1; seed <= trials(3, 30); seed++ {
		o := frost.DefaultOptions()
		if seed%2 == 0 {
			o.Epoch, o.Growth = 0.2, 0.1
		}
		x := try(t, o, sched.Options{}, uint64(seed), bin)
		if x.Verdict != frost.Clean || x.Harmless > 0 || x.stdout != want {
			t.Errorf("seed %d prints %q, natively %q: %s", seed, x.stdout, want, x.text())
		}
	}
}

// TestServersAreClean: the servers of docs/servers.md that have a process for each core and no data race answer
// their clients under Frost as on that page, and no replica differs.
func TestServersAreClean(t *testing.T) {
	page, err := os.ReadFile("../../docs/servers.md")
	if err != nil {
		t.Fatal(err)
	}
	servers := []string{"lighttpd", "nginx"}
	for _, name := range servers[:testsize.Pick(0, 1, len(servers))] {
		t.Run(name, func(t *testing.T) {
			needServer(t, name)
			script, want := serverScript(t, string(page), name)
			file := scriptFile(t, script)
			for seed := 1; seed <= trials(1, 5); seed++ {
				x := try(t, frost.DefaultOptions(), sched.Options{}, uint64(seed), "/bin/sh", file)
				if x.Verdict != frost.Clean || x.Harmless > 0 || x.stdout != want {
					t.Errorf("seed %d prints\n%s\nwant\n%s\n%s", seed, x.stdout, want, x.text())
				}
			}
		})
	}
}

// TestRaceInServerIsSurvived: a data race that a preloaded library brings into lighttpd makes it abort in a run
// without Frost, and is detected and survived under Frost: clients get the answers of docs/servers.md.
func TestRaceInServerIsSurvived(t *testing.T) {
	testsize.SkipQuick(t)
	needServer(t, "lighttpd")
	page, err := os.ReadFile("../../docs/servers.md")
	if err != nil {
		t.Fatal(err)
	}
	library := gcctest.File(t, "testdata/lost.c", "-shared", "-fPIC")
	script, want := serverScript(t, string(page), "lighttpd")
	file := scriptFile(t, strings.Replace(script, "\nlighttpd ", "\nLD_PRELOAD="+library+" lighttpd ", 1))
	c := configuration(sched.Options{}, 1, "/bin/sh", file)
	var alone strings.Builder
	c.Stdout = &alone
	c.MaxInstructions = 200_000_000 // the script waits for a server that does not answer
	if _, err := machine.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if alone.String() == want {
		t.Error("the race has no effect without Frost")
	}
	x := try(t, frost.DefaultOptions(), sched.Options{}, 1, "/bin/sh", file)
	if x.Verdict != frost.Survived || x.stdout != want {
		t.Errorf("under Frost the clients get\n%s\nwant\n%s\n%s", x.stdout, want, x.text())
	}
}

// needServer skips a test on a host without a server or its client.
func needServer(t *testing.T, name string) {
	t.Helper()
	for _, program := range []string{"/usr/sbin/" + name, "/usr/bin/curl"} {
		if _, err := os.Stat(program); err != nil {
			t.Skipf("this host has no %s; `internal/setup/packages.sh servers` installs it", program)
		}
	}
}

// scriptFile writes a script to a file.
func scriptFile(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.sh")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// serverScript returns a server's script on the page, and its output.
func serverScript(t *testing.T, page, name string) (script, output string) {
	t.Helper()
	_, section, _ := strings.Cut(page, "\n## "+name+"\n")
	_, section, found := strings.Cut(section, "```sh\n")
	script, section, ended := strings.Cut(section, "```\n\n```text\n")
	output, _, closed := strings.Cut(section, "```\n")
	if !found || !ended || !closed {
		t.Fatalf("docs/servers.md has no script of %s", name)
	}
	return script, output
}
