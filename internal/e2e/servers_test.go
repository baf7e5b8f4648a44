package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

// servers are the sections of docs/servers.md, with the programs that their scripts
// need besides those of every test.
var servers = []struct {
	name  string
	needs []string
}{
	{"nginx", []string{"/usr/sbin/nginx", "/usr/bin/curl"}},
	{"apache2", []string{"/usr/sbin/apache2", "/usr/bin/ab", "/usr/bin/curl"}},
	{"lighttpd", []string{"/usr/sbin/lighttpd", "/usr/bin/curl"}},
	{"redis", []string{"/usr/bin/redis-server", "/usr/bin/redis-cli", "/usr/bin/redis-benchmark"}},
	{"memcached", []string{"/usr/bin/memcached"}},
	{"mariadb-server", []string{"/usr/sbin/mariadbd", "/usr/bin/mariadb", "/usr/bin/mariadb-install-db"}},
	{"postgresql", []string{"/usr/lib/postgresql/*/bin/postgres", "/usr/bin/psql"}},
}

// serverScript is a section of docs/servers.md.
type serverScript struct {
	flags  string // of the command, in the shell's syntax
	script string
	stdout string
}

var serverSection = regexp.MustCompile("(?s)^([a-z0-9-]+)\n.*?\n```console\n\\$ heddle run --cores 4 ([^\n]*)-- sh script.sh\n```\n\n```sh\n(.*?)```\n\n```text\n(.*?)```\n")

func readServerScripts(t *testing.T) map[string]serverScript {
	t.Helper()
	text, err := os.ReadFile("../../docs/servers.md")
	if err != nil {
		t.Fatal(err)
	}
	scripts := map[string]serverScript{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		if !strings.Contains(section, "\n```sh\n") {
			continue // the subjects of other packages' tests
		}
		m := serverSection.FindStringSubmatch(section)
		if m == nil {
			t.Fatalf("docs/servers.md: no command, script and output in the section\n%s", shorten(section))
		}
		scripts[m[1]] = serverScript{m[2], m[3], m[4]}
	}
	return scripts
}

// serverMachines are the flags that the scripts run under: the first twice.
func serverMachines() []string {
	machines := []string{"--cores 4", "--cores 1"}
	if testsize.Long() {
		machines = append(machines, "--cores 8 --seed 2", "--cores 4 --sched random", "--cores 4 --sched pct --seed 3",
			"--cores 2 --sched rr", "--cores 4 --sched kendo", "--cores 4 --model tso")
	}
	return machines
}

// TestServers runs the commands of docs/servers.md. They print the output on the page, which
// is their native output, on every machine; a second run of the same command, on
// another number of the host's processors, has the same digests.
func TestServers(t *testing.T) {
	scripts := readServerScripts(t)
	if len(scripts) != len(servers) {
		t.Errorf("docs/servers.md has %d servers, and %d are tested", len(scripts), len(servers))
	}
	for _, s := range testsize.Sample(servers, testsize.Pick(1, len(servers), len(servers)), 0) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, pattern := range s.needs {
				if found, err := filepath.Glob(pattern); err != nil || len(found) == 0 {
					t.Skipf("this host has no %s; `internal/setup/packages.sh servers` installs it", pattern)
				}
			}
			page := scripts[s.name]
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "script.sh"), []byte(page.script), 0o644)
			for i, machine := range serverMachines() {
				first := serve(t, dir, "GOMAXPROCS=1", machine, page)
				if i > 0 && !testsize.Long() {
					continue
				}
				if second := serve(t, dir, "GOMAXPROCS=4", machine, page); first != second {
					t.Errorf("%s: two runs differ:\n%s\n%s", machine, first, second)
				}
			}
		})
	}
}

// serve runs a script, checks its output, and returns the digests of the run.
func serve(t *testing.T, dir, env, machine string, page serverScript) string {
	t.Helper()
	summary := filepath.Join(t.TempDir(), "summary.json")
	line := fmt.Sprintf(`exec "$0" run --quiet --summary "$1" %s %s -- sh script.sh`, machine, page.flags)
	o := execute(t, dir, []string{env}, "sh", "-c", line, bin, summary)
	if o.stdout != page.stdout || o.stderr != "" || o.status != 0 {
		t.Fatalf("%s: want the output\n%s\ngot %v", machine, page.stdout, o)
	}
	r := readSummary(t, summary)
	return fmt.Sprintf("run %s, state %s, schedule %s, output %s", r.Digest, r.StateDigest, r.ScheduleDigest, r.OutputDigest)
}
