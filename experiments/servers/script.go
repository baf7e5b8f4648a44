package servers

import (
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/internal/shellword"
)

// The script asks whether the server is ready quickTries times after 0.1 s of virtual time, and then slowTries times after
// 1 s.
const (
	quickTries = 50
	slowTries  = 115
)

// functions are the parts of the script that depend on the server's name alone. A server has ended when it is
// gone or a zombie, and its status is known then.
const functions = `fail() { echo "$name: $*" >&2; exit 1; }
ended() { ! kill -0 $server 2> /dev/null || grep -q '^State:.Z' /proc/$server/status; }
check_server() {
	if ended; then
		wait $server
		status=$?
		tail -n 5 server.log >&2
		fail "the server ended with status $status $1"
	fi
}
`

// script is the shell's script of a run.
func (s *Server) script(cores int, r *strings.Replacer) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	onServerCores := ""
	line("name=%s", shellword.Quote(s.Name))
	b.WriteString(functions)
	if s.ClientCores > 0 {
		onServerCores = fmt.Sprintf("taskset -c 0-%d ", cores-1)
		line("taskset -p -c %d-%d $$ > /dev/null || exit", cores, s.MachineCores(cores)-1)
	}
	line("mkdir -p %s && cd %s || exit", Folder, Folder)
	for _, f := range s.Files {
		if i := strings.LastIndex(f.Name, "/"); i > 0 {
			line("mkdir -p %s", shellword.Quote(f.Name[:i]))
		}
		line("printf %%s %s > %s || exit", shellword.Quote(r.Replace(f.Content)), shellword.Quote(f.Name))
	}
	line("as=")
	if s.User != "" {
		user := shellword.Quote(s.User)
		line("if [ $(id -u) = 0 ]; then chown -R %s . && as='setpriv --reuid %s --regid %s --clear-groups' || exit; fi", user, user, user)
	}
	step := func(name, script string) {
		if script != "" {
			line("$as sh -e -c %s > %s.log 2>&1 || { tail -n 5 %s.log >&2; fail 'the script %s failed'; }", shellword.Quote(r.Replace(script)), name, name, name)
		}
	}
	step("prepare", s.Prepare)
	line("%s$as %s > server.log 2>&1 &", onServerCores, quoted(r, s.Command))
	line("server=$!")
	line("tries=0")
	line("until %s > ready.log 2>&1; do", s.readyCommand(r))
	line("\tcheck_server 'before it was ready'")
	line("\ttries=$((tries + 1))")
	line("\t[ $tries -le %d ] || fail 'the server was not ready after %d s of virtual time'", quickTries+slowTries, quickTries/10+slowTries)
	line("\tif [ $tries -le %d ]; then sleep 0.1; else sleep 1; fi", quickTries)
	line("done")
	step("load", s.Load)
	line("timeout -k 1 %d %s > client.out 2> client.err", s.Limit, quoted(r, s.Client))
	line("status=$?")
	line("cat client.out")
	line("cat client.err >&2")
	line("check_server 'while the client worked'")
	line("[ $status != 124 ] || fail 'the client has not ended after %d s of virtual time'", s.Limit)
	line("[ $status = 0 ] || fail \"the client ended with status $status\"")
	for _, pattern := range s.Replies {
		word := shellword.Quote(r.Replace(pattern))
		line("grep -Eq -e %s client.out || fail the client prints no line that matches %s", word, word)
	}
	if len(s.Stop) == 1 {
		line("kill -%s $server", shellword.Quote(s.Stop[0]))
	} else {
		line("%s > stop.log 2>&1 || { tail -n 5 stop.log >&2; fail 'the server cannot be stopped'; }", quoted(r, s.Stop))
	}
	line("wait $server")
	line("status=$?")
	line("[ $status = %d ] || fail \"the stopped server ended with status $status, not %d\"", s.Status, s.Status)
	return b.String()
}

// readyCommand is the command that asks whether the server is ready.
func (s *Server) readyCommand(r *strings.Replacer) string {
	if len(s.Ready) > 0 {
		return quoted(r, s.Ready)
	}
	return r.Replace("bash -c ': < /dev/tcp/127.0.0.1/{port}'")
}
