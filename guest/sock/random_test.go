package sock_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// vocabulary is the set of calls in random scripts.
type vocabulary struct {
	kinds []string // family and kind
	binds []string // addresses
	peers []string
	// backlogs are lengths of queues. A TCP connection that a queue has no room
	// for tries again after a second on the host.
	backlogs []string
	pairs    bool
	// lines are further operations, with S and T for sockets.
	lines []string
}

var common = []string{
	"send S 0", "send S 1", "send S 100", "send S 5000", "recv S 1", "recv S 60", "recv S 100000", "recv S 40 peek",
	"send S 10", "recv S 10", "send S 10", "recv S 10", "shutdown S rd", "shutdown S wr", "shutdown S rdwr",
	"name S", "peer S", "poll S", "get S error", "ioctl S inq", "get S acceptconn",
}

// modelled is the release of Linux that the random scripts were compared with.
// Others differ in corners that no program is known to depend on.
const modelled = "6.18."

func (v *vocabulary) check(t *testing.T) {
	var host unix.Utsname
	if err := unix.Uname(&host); err != nil {
		t.Fatal(err)
	}
	if release := unix.ByteSliceToString(host.Release[:]); !strings.HasPrefix(release, modelled) {
		t.Skipf("the host has Linux %s, and the model is %sx", release, modelled)
	}
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		w := newWorld(t, fmt.Sprintf("%s/%d", dir, n))
		mkdir(w.dir)
		defer w.closeAll()
		names := strings.Split("a b c d e f g h", " ")
		pick := func(t *rapid.T, label string) string { return rapid.SampledFrom(names).Draw(t, label) }
		fill := func(t *rapid.T, line string) string {
			target := pick(t, "T")
			if o := w.sockets[target]; strings.Contains(line, "=T") && (o == nil || portOf(nativeName(o.fd)) == 0) {
				t.Skip("no such port")
			}
			return strings.NewReplacer(" S ", " "+pick(t, "S")+" ", "=T", "="+target, " T,", " "+target+",").Replace(line + " ")
		}
		free := func(t *rapid.T) string {
			name := pick(t, "new")
			if w.sockets[name] != nil {
				t.Skip("in use")
			}
			return name
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {
				for _, name := range names {
					if w.sockets[name] != nil {
						w.step("poll " + name)
					}
				}
			},
			"socket": func(t *rapid.T) { w.step("socket " + free(t) + " " + rapid.SampledFrom(v.kinds).Draw(t, "kind")) },
			"pair": func(t *rapid.T) {
				if !v.pairs {
					t.Skip("no pairs")
				}
				x, y := free(t), free(t)
				if x == y {
					t.Skip("one name")
				}
				w.step("pair " + x + " " + y + " " + rapid.SampledFrom(v.kinds).Draw(t, "kind"))
			},
			"bind": func(t *rapid.T) {
				w.step("bind " + pick(t, "S") + " " + fill(t, rapid.SampledFrom(v.binds).Draw(t, "addr")))
			},
			"listen": func(t *rapid.T) {
				w.step("listen " + pick(t, "S") + " " + rapid.SampledFrom(v.backlogs).Draw(t, "backlog"))
			},
			"connect": func(t *rapid.T) {
				w.step("connect " + pick(t, "S") + " " + fill(t, rapid.SampledFrom(v.peers).Draw(t, "addr")))
			},
			"accept": func(t *rapid.T) { w.step("accept " + pick(t, "S") + " " + free(t)) },
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 2).Draw(t, "rarely") == 0 {
					w.step("close " + pick(t, "S"))
				}
			},
			"line": func(t *rapid.T) {
				w.step(strings.TrimSpace(fill(t, rapid.SampledFrom(append(common, v.lines...)).Draw(t, "line"))))
			},
		})
	})
}

func TestRandomUnixSockets(t *testing.T) {
	for _, kind := range []string{"stream", "dgram", "seqpacket"} {
		t.Run(kind, func(t *testing.T) {
			v := vocabulary{
				kinds: []string{"unix " + kind}, pairs: true,
				binds: []string{"@x", "@y", "/x", "/y", "none"}, backlogs: []string{"0", "1", "4"},
				peers: []string{"@x", "@y", "/x", "/y", "@x", "@nobody", "/nobody"},
				lines: []string{
					"send S 10 fds T,", "send S 7 cred", "set S passcred 1", "set S passcred 0", "get S peercred",
					"send S 70000", "ioctl S outq", "set S sndbuf 5000", "connect S unspec", "send S 300000",
				},
			}
			if kind == "dgram" {
				v.lines = append(v.lines, "send S 10 to @x", "send S 10 to /x", "send S 10 to @y", "send S 10 to @nobody")
			}
			v.check(t)
		})
	}
}

func TestRandomTCPSockets(t *testing.T) {
	ownNetwork(t)
	v := vocabulary{
		kinds:    []string{"inet stream", "inet stream", "inet6 stream"},
		binds:    []string{"127.0.0.1:0", "127.0.0.1:=T", "127.0.0.2:=T", "0.0.0.0:0", "[::1]:=T", "[::1]:0", "[::]:0", "[::ffff:127.0.0.1]:=T"},
		peers:    []string{"127.0.0.1:=T", "127.0.0.1:=T", "127.0.0.2:=T", "0.0.0.0:=T", "[::1]:=T", "[::1]:=T", "[::]:=T", "unspec"},
		backlogs: []string{"7", "8"},
		lines: []string{
			"send S 3 oob", "recv S 1 oob", "send S 1 oob", "recv S 5", "ioctl S atmark", "set S oobinline 1", "set S rcvlowat 20", "set S rcvlowat 1", "set S linger 1,0", "set S reuseaddr 1", "connect S 127.0.0.1:=T", "connect S [::1]:=T",
		},
	}
	v.check(t)
}

func TestRandomUDPSockets(t *testing.T) {
	ownNetwork(t)
	v := vocabulary{
		kinds:    []string{"inet dgram", "inet dgram", "inet6 dgram"},
		binds:    []string{"127.0.0.1:0", "127.0.0.1:=T", "127.0.0.2:=T", "0.0.0.0:0", "[::1]:=T", "[::1]:0", "[::]:0", "unspec"},
		peers:    []string{"127.0.0.1:=T", "127.0.0.1:=T", "127.0.0.2:=T", "0.0.0.0:=T", "[::1]:=T", "[::1]:=T", "[::ffff:127.0.0.1]:=T", "unspec"},
		backlogs: []string{"5"},
		lines: []string{
			"send S 10 to 127.0.0.1:=T", "send S 20 to 127.0.0.1:=T", "send S 30 to 127.0.0.2:=T", "set S reuseaddr 1",
			"connect S 127.0.0.1:=T", "connect S unspec", "send S 5 more", "send S 10 to [::1]:=T more",
		},
	}
	v.check(t)
}
