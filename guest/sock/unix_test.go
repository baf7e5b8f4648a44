package sock_test

import (
	"strings"
	"testing"
)

func TestUnixPairs(t *testing.T) {
	for _, kind := range []string{"stream", "seqpacket", "dgram"} {
		t.Run(kind, func(t *testing.T) {
			script(t, strings.ReplaceAll(`
				pair a b unix KIND
				poll a
				name a
				peer a
				get a peercred
				recv a 10
				send a 0
				poll b
				ioctl b inq
				recv b 10
				send a 10
				send a 20
				ioctl b inq
				poll b
				recv b 5 peek
				recv b 5
				recv b 100
				recv b 100
				send b 100 to @nobody
				shutdown a bad
				shutdown a wr
				poll a
				poll b
				send a 1
				recv b 10
				send b 30
				recv a 10
				shutdown b rd
				poll a
				poll b
				close b
				poll a
				send a 1
				recv a 100
				recv a 100
				recv a 100
				get a error
			`, "KIND", kind))
		})
	}
}

func TestUnixCloseWithUnreadData(t *testing.T) {
	for _, kind := range []string{"stream", "seqpacket", "dgram"} {
		t.Run(kind, func(t *testing.T) {
			script(t, strings.ReplaceAll(`
				pair a b unix KIND
				send a 10
				send b 20
				close b
				poll a
				get a error
				recv a 100
				recv a 100
				send a 1
				poll a
				pair a b unix KIND
				send a 10
				send b 20
				close b
				recv a 5
				recv a 100
				recv a 100
				recv a 100
				pair a b unix KIND
				send a 10
				close b
				send a 10
				send a 10
				recv a 10
				recv a 10
			`, "KIND", kind))
		})
	}
}

func TestUnixConnections(t *testing.T) {
	for _, kind := range []string{"stream", "seqpacket"} {
		for _, addr := range []string{"@name", "/name"} {
			t.Run(kind+addr[:1], func(t *testing.T) {
				script(t, strings.NewReplacer("KIND", kind, "ADDR", addr).Replace(`
					socket l unix KIND
					poll l
					listen l 2
					accept l x
					socket c unix KIND
					recv c 5
					send c 5
					connect c ADDR
					bind l ADDR
					bind l ADDR
					bind l @other
					bind l /other
					connect c ADDR
					listen l 1
					listen l 1
					poll l
					name l
					peer l
					get l acceptconn
					get c acceptconn
					connect c ADDR
					name c
					peer c
					poll c
					poll l
					connect c ADDR
					send c 10
					socket d unix KIND
					connect d ADDR
					socket e unix KIND
					connect e ADDR
					poll e
					accept l s
					connect e ADDR
					name s
					peer s
					recv s 100
					send s 10
					recv c 100
					get c peercred
					get s peercred
					shutdown l rd
					poll l
					accept l s2
					accept l s3
					accept l s4
					socket f unix KIND
					connect f ADDR
					close l
					connect f ADDR
					send s 3
					recv c 5
					socket g unix KIND
					bind g ADDR
					poll g
					listen c 1
					connect g ADDR
				`))
			})
		}
	}
}

func TestUnixListenerClosesWithPendingConnections(t *testing.T) {
	for _, kind := range []string{"stream", "seqpacket"} {
		t.Run(kind, func(t *testing.T) {
			script(t, strings.ReplaceAll(`
				socket l unix KIND
				bind l @x
				listen l 5
				socket c unix KIND
				connect c @x
				send c 5
				socket d unix KIND
				connect d @x
				close l
				poll c
				poll d
				send c 5
				recv c 5
				recv c 5
				recv d 5
				recv d 5
				send d 5
				peer d
			`, "KIND", kind))
		})
	}
}

func TestUnixDatagrams(t *testing.T) {
	script(t, `
		socket a unix dgram
		socket b unix dgram
		socket c unix dgram
		listen a 1
		accept a x
		poll a
		send a 5
		send a 5 to @b
		bind b @b
		bind c /c
		name b
		name c
		send a 5 to @b
		recv b 3
		send b 6 to /c
		recv c 10
		send c 7 to @b
		recv b 10 peek
		recv b 10
		connect a @b
		peer a
		poll a
		send a 1
		send c 2 to @b
		ioctl b inq
		connect b @b
		send c 2 to @b
		recv b 5
		recv b 5
		connect b unspec
		connect a unspec
		connect a unspec
		send a 1
		connect a /c
		send a 1
		close c
		poll a
		send a 1
		send a 1
		get a error
		connect a /c
		connect a /nosuch
		connect a @nosuch
		socket s unix stream
		bind s @s
		connect a @s
		send a 3 to @s
		connect s @b
		shutdown b rd
		send a 4 to @b
		bind a none
		name a
	`)
}

func TestUnixDatagramQueueIsBounded(t *testing.T) {
	w := newWorld(t, t.TempDir())
	defer w.closeAll()
	for _, line := range []string{"socket a unix dgram", "socket b unix dgram", "socket c unix dgram", "bind a @a", "connect b @a"} {
		w.step(line)
	}
	for range 12 {
		w.step("send b 1")
		w.step("send c 1 to @a")
		w.step("poll b")
		w.step("poll c")
		w.step("ioctl b outq")
	}
	for range 3 {
		w.step("recv a 10")
		w.step("poll b")
		w.step("send b 5")
	}
	w.step("connect a unspec")
	w.step("close a")
	w.step("poll b")
	w.step("send b 1")
}

// Filling a connection takes as many messages as on the host, whatever their
// size.
func TestUnixBuffersAreAsLargeAsOnTheHost(t *testing.T) {
	for _, kind := range []string{"stream", "seqpacket", "dgram"} {
		for _, size := range []string{"1", "192", "193", "1000", "3777", "5000", "8000", "16384", "32768", "40000", "65536", "100000", "200000", "212960", "212961", "300000"} {
			w := newWorld(t, "")
			w.step("pair a b unix " + kind)
			for {
				r := w.step("send a " + size)
				w.step("ioctl a outq")
				if r == "EAGAIN" || r == "EMSGSIZE" {
					break
				}
			}
			w.step("poll a")
			for w.step("recv b 60000") != "EAGAIN" {
				w.step("ioctl b inq")
				w.step("ioctl a outq")
				w.step("poll a")
			}
			w.step("set a sndbuf 5000")
			w.step("get a sndbuf")
			for range 100 {
				if r := w.step("send a " + size); r == "EAGAIN" || r == "EMSGSIZE" {
					break
				}
			}
			w.closeAll()
		}
	}
}

func TestUnixRightsAndCredentials(t *testing.T) {
	for _, kind := range []string{"stream", "seqpacket", "dgram"} {
		t.Run(kind, func(t *testing.T) {
			script(t, strings.ReplaceAll(`
				pair a b unix KIND
				pair c d unix stream
				send a 4 fds c
				send a 4
				send a 4 fds c,d
				recv b 100 peek
				recv b 100 fds x
				send x0 7
				recv d 7
				recv b 2
				recv b 100
				recv b 100
				send a 3 fds c cred
				recv b 100
				set b passcred 1
				send a 3
				recv b 3
				name a
				send a 3 cred
				set b passcred 0
				send a 4
				recv b 100
				recv b 100
				set a passcred 1
				send a 3
				name a
				recv b 100
				get a passcred
				send a 0 fds c
				recv b 10
				send a 1 fds c
				close b
				close a
				send d 1
				close c
				poll d
				recv d 10
				poll x0
				close x0
				poll d
			`, "KIND", kind))
		})
	}
}
