package sock_test

import (
	"strings"
	"testing"
)

// both runs a script over IPv4 and IPv6.
func overBoth(t *testing.T, text string) {
	t.Helper()
	for _, f := range [][2]string{{"inet", "127.0.0.1"}, {"inet6", "[::1]"}} {
		t.Run(f[0], func(t *testing.T) { alone(t, strings.NewReplacer("FAMILY", f[0], "HOST", f[1]).Replace(text)) })
	}
}

// connection makes a connection from c to s through the listener l.
const connection = `
	socket l FAMILY stream
	bind l HOST:0
	listen l 5
	socket c FAMILY stream
	connect c HOST:=l
	poll c
	connect c HOST:=l
	accept l s
`

func TestTCPConnections(t *testing.T) {
	overBoth(t, `
		socket l FAMILY stream
		name l
		peer l
		poll l
		accept l x
		recv l 5
		send l 5
		shutdown l wr
		bind l HOST:0
		name l
		bind l HOST:0
		listen l 5
		listen l 6
		poll l
		accept l x
		recv l 5
		send l 5
		get l acceptconn
		socket c FAMILY stream
		poll c
		connect c HOST:=l
		connect c HOST:=l
		connect c HOST:=l
		poll c
		poll l
		name c
		peer c
		accept l s
		poll l
		name s
		peer s
		get s error
		get c error
		listen c 3
		bind c HOST:0
		accept c x
		send c 10
		ioctl s inq
		ioctl s atmark
		poll s
		recv s 3
		send c 10
		recv s 100 peek
		recv s 100
		recv s 100
		ioctl l inq
		send c 5 to HOST:9
		recv c 5
		get s acceptconn
		shutdown c bad
		shutdown c wr
		poll c
		poll s
		recv s 10
		recv s 10
		send c 1
		send s 10
		recv c 10
		shutdown s wr
		poll c
		poll s
		recv c 10
		send s 1
		shutdown s wr
		close s
		poll c
		recv c 10
		connect c HOST:=l
	`)
}

func TestTCPNobodyListens(t *testing.T) {
	overBoth(t, `
		socket l FAMILY stream
		bind l HOST:0
		socket c FAMILY stream
		connect c HOST:=l
		poll c
		get c error
		get c error
		poll c
		connect c HOST:=l
		connect c HOST:=l
		connect c HOST:=l
		recv c 5
		recv c 5
		send c 5
		peer c
		socket d FAMILY stream
		connect d HOST:=l
		recv d 5
		recv d 5
		send d 5
		listen l 1
		connect d HOST:=l
		poll d
		socket e FAMILY stream
		connect e HOST:=l
		get e error
		peer e
		close l
		poll e
		recv e 5
		recv e 5
		send e 5
		get e error
	`)
}

func TestTCPCloseWithUnreadData(t *testing.T) {
	overBoth(t, connection+`
		send c 10
		send s 20
		close s
		poll c
		recv c 5
		recv c 100
		recv c 100
		recv c 100
		send c 1
		peer c
		poll c
	`)
	overBoth(t, connection+`
		send c 10
		close s
		poll c
		send c 10
		send c 10
		recv c 10
		recv c 10
		get c error
		poll c
		shutdown c wr
	`)
	overBoth(t, connection+`
		send c 10
		close s
		get c error
		get c error
		recv c 10
		send c 10
		poll c
	`)
}

func TestTCPWritingToSomebodyWhoIsGone(t *testing.T) {
	overBoth(t, connection+`
		close s
		poll c
		recv c 10
		send c 10
		poll c
		send c 10
		recv c 10
		get c error
		poll c
	`)
	overBoth(t, connection+`
		send s 10
		close s
		poll c
		send c 10
		poll c
		get c error
		recv c 10
		recv c 10
		send c 1
	`)
	overBoth(t, connection+`
		shutdown s wr
		send s 1
		close s
		send c 10
		send c 10
		recv c 10
	`)
	overBoth(t, connection+`
		shutdown s rd
		poll s
		recv s 5
		send c 10
		recv s 5
		recv s 5
		recv s 5
		poll c
		shutdown s rdwr
		poll s
		poll c
		recv c 5
		send c 5
	`)
}

func TestTCPReset(t *testing.T) {
	overBoth(t, connection+`
		get s linger
		set s linger 1,0
		get s linger
		send s 5
		close s
		poll c
		recv c 5
		recv c 5
		recv c 5
		poll c
	`)
	overBoth(t, connection+`
		set s linger 1,10
		close s
		poll c
		recv c 5
	`)
	overBoth(t, connection+`
		connect s unspec
		poll s
		poll c
		recv c 5
		name s
		peer s
		recv s 5
		connect c unspec
		name c
		connect c HOST:=l
		poll c
		accept l s2
		send s2 3
		recv c 3
	`)
	overBoth(t, connection+`
		shutdown c rdwr
		poll c
		poll s
		recv s 5
		send s 5
		send s 5
		poll s
		recv s 5
		get s error
		shutdown c rd
	`)
}

func TestTCPBothSidesShutDown(t *testing.T) {
	overBoth(t, connection+`
		send c 5
		shutdown c wr
		shutdown s wr
		poll c
		poll s
		recv s 5
		recv s 5
		recv c 5
		peer c
		peer s
		send c 1
		get c error
		shutdown c wr
		shutdown s rd
		shutdown s rdwr
		close c
		poll s
		recv s 1
	`)
}

func TestTCPListenerCloses(t *testing.T) {
	overBoth(t, `
		socket l FAMILY stream
		bind l HOST:0
		listen l 5
		socket c FAMILY stream
		connect c HOST:=l
		send c 5
		socket d FAMILY stream
		connect d HOST:=l
		accept l s
		close l
		poll c
		poll d
		send c 5
		recv s 10
		recv d 5
		recv d 5
		send d 5
	`)
	overBoth(t, connection+`
		shutdown l rd
		poll l
		accept l x
		socket d FAMILY stream
		connect d HOST:=l
		poll d
		get d error
		listen l 3
		poll l
		connect d HOST:=l
		poll d
	`)
}

func TestTCPPorts(t *testing.T) {
	alone(t, `
		socket a inet stream
		bind a 127.0.0.1:0
		socket b inet stream
		bind b 127.0.0.1:=a
		bind b 127.0.0.2:=a
		name b
		socket c inet stream
		bind c 0.0.0.0:=a
		set c reuseaddr 1
		bind c 0.0.0.0:=a
		set a reuseaddr 1
		set b reuseaddr 1
		bind c 0.0.0.0:=a
		listen a 1
		listen c 1
		listen b 1
		socket d inet stream
		connect d 127.0.0.1:=a
		poll a
		poll c
		accept a s
		close a
		socket e inet stream
		connect e 127.0.0.1:=c
		poll c
		socket f inet stream
		bind f 127.0.0.1:=c
		set f reuseaddr 1
		bind f 127.0.0.1:=c
		bind f 1.2.3.4:0
		bind f 127.255.255.1:0
		bind f unspec
		socket g inet stream
		connect g 127.0.0.1:1
		get g error
		connect g 1.2.3.4:0
	`)
	alone(t, `
		socket a inet stream
		set a reuseport 1
		bind a 127.0.0.1:0
		listen a 1
		socket b inet stream
		bind b 127.0.0.1:=a
		set b reuseport 1
		bind b 127.0.0.1:=a
		listen b 1
		socket c inet stream
		set c reuseaddr 1
		bind c 127.0.0.1:=a
		get a reuseport
		get a reuseaddr
	`)
	alone(t, `
		socket a inet6 stream
		bind a [::]:0
		socket b inet stream
		bind b 127.0.0.1:=a
		bind b 0.0.0.0:=a
		listen a 4
		connect b 127.0.0.1:=a
		accept a s
		name s
		peer s
		peer b
		socket c inet6 stream
		connect c [::1]:=a
		accept a t
		peer t
		socket d inet6 stream
		connect d [::ffff:127.0.0.1]:=a
		name d
		peer d
		accept a u
		peer u
		set d v6only 1
		socket e inet6 stream
		get e v6only
		set e v6only 1
		bind e [::]:=a
		bind e [::ffff:127.0.0.1]:0
		bind e [2001:db8::1]:0
		bind e [::]:0
		socket f inet stream
		bind f 0.0.0.0:=e
		socket g inet6 stream
		bind g 127.0.0.1:0
		socket h inet stream
		bind h [::1]:0
		connect h [::1]:1
		connect g 127.0.0.1:1
	`)
	alone(t, `
		socket a inet stream
		bind a 0.0.0.0:0
		listen a 3
		name a
		socket b inet stream
		connect b 0.0.0.0:=a
		name b
		peer b
		accept a s
		name s
		socket c inet stream
		bind c 127.0.0.7:0
		connect c 127.0.0.9:=a
		name c
		peer c
		accept a t
		name t
		peer t
		socket d inet stream
		listen d 3
		name d
		socket e inet6 stream
		listen e 3
		name e
		socket f inet stream
		connect f 127.0.0.1:=e
		get f error
		peer f
	`)
}
