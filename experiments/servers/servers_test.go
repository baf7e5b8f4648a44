package servers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/servers"
)

// files are the project's files of servers.
func files(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob("../../configs/servers/*.yaml")
	if err != nil || len(list) == 0 {
		t.Fatalf("no files of servers: %v", err)
	}
	return list
}

// load reads a server's file, or one of the test with the text.
func load(t testing.TB, text string, client ...string) *servers.Server {
	t.Helper()
	path := text
	if !strings.HasSuffix(text, ".yaml") {
		path = filepath.Join(t.TempDir(), "test.yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := servers.Load(path, client...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFilesOfTheProject: each file is good, and the shell accepts its script.
func TestFilesOfTheProject(t *testing.T) {
	ports := map[string]bool{}
	for _, path := range files(t) {
		s := load(t, path)
		args := s.Args(4, nil)
		if len(args) != 3 || args[0] != "/bin/sh" {
			t.Fatalf("%s: %q", s.Name, args)
		}
		if out, err := exec.Command("sh", "-n", "-c", args[2]).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", s.Name, err, out)
		}
		if len(s.Packages) == 0 || len(s.Needs) == 0 || s.Port == 0 {
			t.Errorf("%s has no packages, programs or port", s.Name)
		}
		ports[s.Name] = true
	}
	for _, name := range []string{"apache2-event", "apache2-worker", "nginx", "lighttpd", "memcached", "redis", "mariadb", "postgresql"} {
		if !ports[name] {
			t.Errorf("there is no file of %s", name)
		}
	}
}

func TestWrongFiles(t *testing.T) {
	good := "port: 80\ncommand: [server]\nclient: [client]\n"
	for _, x := range []struct{ text, field string }{
		{"command: [server]\nclient: [client]\n", "port"},
		{"port: 80\nclient: [client]\n", "command"},
		{"port: 80\ncommand: [server]\n", "client"},
		{good + "clients: a-name-that-is-too-long\n", "clients"},
		{good + "client_cores: 64\n", "client_cores"},
		{good + "status: 256\n", "status"},
		{good + "limit: 0\n", "limit"},
		{good + "files: [{name: /etc/passwd, content: x}]\n", "files[0].name"},
		{good + "files: [{name: a/../../b, content: x}]\n", "files[0].name"},
		{"port: 80\ncommand: [server, \"{rows}\"]\nclient: [client]\n", "command[1]"},
		{good + "stop: [a, \"{other}\"]\n", "stop[1]"},
		{good + "unknown: 1\n", "unknown"},
	} {
		path := filepath.Join(t.TempDir(), "wrong.yaml")
		if err := os.WriteFile(path, []byte(x.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := servers.Load(path); err == nil || !strings.Contains(err.Error(), x.field) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", x.text, err)
		}
	}
	if _, err := servers.Load("missing.yaml"); err == nil {
		t.Error("a file that is missing is read")
	}
}

// TestValues: names in braces have the server's values, or others; other words in braces stay.
func TestValues(t *testing.T) {
	s := load(t, `
port: 81
values: {n: "5", other: x}
files: [{name: f, content: "n={n} %{n}i ${x} {unknown}"}]
command: [server, "{port}", "{cores}", "{folder}"]
client: [client, "{n}", "it's"]
`)
	script := s.Args(3, map[string]string{"n": "7", "nothing": "1"})[2]
	for _, want := range []string{"'n=7 %7i ${x} {unknown}'", "taskset -c 0-2 $as server 81 3 /tmp/server", "client 7 'it'\\''s'", "taskset -p -c 3-4 $$"} {
		if !strings.Contains(script, want) {
			t.Errorf("the script lacks %q:\n%s", want, script)
		}
	}
	if !s.Uses("n") || s.Uses("port") || s.Uses("nothing") {
		t.Error("wrong names can be varied")
	}
	if got := s.MachineCores(3); got != 5 {
		t.Errorf("%d cores", got)
	}
}

func TestMissing(t *testing.T) {
	s := load(t, "port: 80\ncommand: [server]\nclient: [client]\nneeds: [/bin/sh, /no/such/*]\n")
	if got := s.Missing(); got != "/no/such/*" {
		t.Errorf("%q", got)
	}
}
