package sweep

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// echoServer is the file of a server in Perl that answers each line of its clients, and a client that sends a number of them.
const echoServer = `
port: 9000
values: {lines: "5", word: hello}
files:
  - name: server.pl
    content: |
      use Socket;
      my ($s, $c);
      $SIG{TERM} = sub { exit 0 };
      socket($s, PF_INET, SOCK_STREAM, 0) && bind($s, sockaddr_in({port}, INADDR_LOOPBACK)) && listen($s, 10) or die;
      while (accept($c, $s)) { while (<$c>) { exit 7 if /crash/; syswrite($c, $_) } }
  - name: client.pl
    content: |
      use Socket;
      my $s;
      socket($s, PF_INET, SOCK_STREAM, 0) && connect($s, sockaddr_in({port}, INADDR_LOOPBACK)) or die;
      for (1 .. {lines}) { syswrite($s, "{word}\n"); print "got ", scalar <$s> }
command: [perl, server.pl]
client: [perl, client.pl]
replies: ["^got {word}$"]
`

// loadServing loads an experiment with the server of echoServer.
func loadServing(t *testing.T, text string) (*Experiment, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"echo.yaml": echoServer, "x.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	x, err := Load(filepath.Join(dir, "x.yaml"))
	if err == nil {
		x.Store = filepath.Join(dir, "store.sqlite")
	}
	return x, err
}

// TestServersInExperiments: the grid varies the server's cores and its values; the table has the measures of
// requests; a run whose server crashes is a failed one.
func TestServersInExperiments(t *testing.T) {
	x, err := loadServing(t, `
programs: [{server: echo.yaml}]
grid: {cores: [1], arguments: {lines: [3], word: [hello, crash]}}
`)
	if err != nil {
		t.Fatal(err)
	}
	summary, _ := sweepAll(t, x, false)
	if summary.Total != 2 || summary.Ran != 2 || summary.Failed != 1 || !strings.Contains(summary.FirstFailure, "echo: the server ended with status 7 while the client worked") {
		t.Errorf("%+v", summary)
	}
	table, err := x.Table(Options{}, Selection{Measures: []string{"requests", "throughput", "response_p50", "service_max"}, Where: []string{"word=hello"}})
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]string{}
	for i, column := range table.Head {
		cells[column.Key] = table.Rows[0][i]
	}
	if cells["program"] != "echo" || cells["cores"] != "1" || cells["requests"] != "3" || cells["lines"] != "3" || cells["identical_to_native"] != "-" || cells["throughput"] == "-" || cells["service_max"] == "-" {
		t.Errorf("%v", cells)
	}
	for _, run := range plan(t, x).Runs {
		if o := run.Job.Options; o.Cores != 3 || len(o.Requests) != 1 || o.Requests[0] != 9000 {
			t.Errorf("%d cores, requests %v", o.Cores, o.Requests)
		}
	}
}

func plan(t *testing.T, x *Experiment) *Plan {
	t.Helper()
	p, err := x.Plan(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWrongServersInExperiments(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"programs: [{server: missing.yaml}]", "missing.yaml"},
		{"programs: [{server: echo.yaml, command: [true]}]", "programs[0].command"},
		{"programs: [{command: [\"true\"], client: [ab]}]", "programs[0].client"},
		{"programs: [{server: echo.yaml, client: [ab, \"{other}\"]}]", "client[1]"},
		{"programs: [{server: echo.yaml}]\nmachine: {region: auto}", "region"},
		{"programs: [{server: echo.yaml}]\ngrid: {cores: [63]}", "grid.cores[0]"},
		{"programs: [{server: echo.yaml}]\nmachine: {cores: 64}", "machine.cores"},
		{"programs: [{server: echo.yaml}]\nmachine: {requests: [0]}", "machine.requests[0]"},
	} {
		if _, err := loadServing(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}
