package sock_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/sock"
)

func TestUDP(t *testing.T) {
	overBoth(t, `
		socket a FAMILY dgram
		socket b FAMILY dgram
		poll a
		name a
		peer a
		listen a 1
		accept a x
		send a 5
		recv a 5
		bind a HOST:0
		name a
		bind a HOST:0
		send b 5 to HOST:=a
		name b
		poll a
		ioctl a inq
		send b 0 to HOST:=a
		send b 9 to HOST:=a
		recv a 3 peek
		recv a 3
		ioctl a inq
		poll a
		recv a 3
		recv a 100
		recv a 100
		ioctl a inq
		send a 4 to HOST:=b
		recv b 100
		connect b HOST:=a
		name b
		peer b
		send b 5
		send b 6 to HOST:=a
		send b 6 to HOST:0
		recv a 100
		recv a 100
		socket c FAMILY dgram
		bind c HOST:0
		send c 5 to HOST:=b
		recv b 100
		send a 7 to HOST:=b
		recv b 100
		shutdown a wr
		shutdown b wr
		poll b
		send b 5
		shutdown b rd
		poll b
		recv b 5
		connect b unspec
		name b
		peer b
		send b 5
		connect b HOST:=c
		recv b 5 oob
		send c 5 oob to HOST:=a
	`)
}

func TestUDPNobodyReceives(t *testing.T) {
	overBoth(t, `
		socket a FAMILY dgram
		bind a HOST:0
		socket b FAMILY dgram
		connect b HOST:=a
		close a
		send b 5
		poll b
		send b 5
		send b 5
		recv b 5
		recv b 5
		send b 5
		get b error
		get b error
		poll b
		socket c FAMILY dgram
		send c 5 to HOST:9
		send c 5 to HOST:9
		poll c
		recv c 5
	`)
}

func TestUDPAddresses(t *testing.T) {
	script(t, `
		socket a inet dgram
		bind a 0.0.0.0:0
		socket b inet dgram
		bind b 127.0.0.2:=a
		set a reuseaddr 1
		set b reuseaddr 1
		bind b 127.0.0.2:=a
		socket c inet dgram
		send c 5 to 127.0.0.2:=a
		recv a 10
		recv b 10
		send c 6 to 127.0.0.3:=a
		recv a 10
		recv b 10
		bind c 127.0.0.9:0
		send c 6 to 0.0.0.0:=a
		recv a 10
		socket d inet dgram
		bind d 127.0.0.5:0
		name d
		send d 7 to 127.0.0.9:=a
		recv a 10
		socket e inet6 dgram
		send e 5 to [::ffff:127.0.0.1]:=a
		name e
		recv a 10
		socket f inet6 dgram
		bind f [::]:0
		send c 5 to 127.0.0.1:=f
		recv f 10
		send a 5 to 127.0.0.1:=f
		recv f 10
		send f 8 to [::ffff:127.0.0.9]:=c
		recv c 10
		connect c 127.0.0.2:=a
		connect c unspec
		name c
		connect e unspec
		send a 65507 to 127.0.0.2:=b
		send a 65508 to 127.0.0.2:=b
		send e 65508 to [::1]:=f
		recv f 70000
		recv b 70000
		send a 5 to 255.255.255.255:9
	`)
	script(t, `
		socket a inet dgram
		bind a 127.0.0.1:0
		connect a 127.0.0.1:=a
		send a 5
		recv a 5
		close a
		socket b inet dgram
		connect b 127.0.0.1:5
		name b
		connect b 127.0.0.2:6
		name b
		peer b
		connect b unspec
		name b
		bind b 127.0.0.1:0
	`)
	script(t, `
		socket a inet dgram
		set a reuseaddr 1
		bind a 127.0.0.1:0
		socket b inet dgram
		set b reuseaddr 1
		bind b 127.0.0.1:=a
		socket c inet dgram
		send c 5 to 127.0.0.1:=a
		recv a 5
		recv b 5
		connect a 127.0.0.1:=c
		send c 5 to 127.0.0.1:=a
		recv a 5
		recv b 5
		close b
		send c 5 to 127.0.0.1:=a
		recv a 5
	`)
}

func TestUDPDatagramsInParts(t *testing.T) {
	overBoth(t, `
		socket a FAMILY dgram
		bind a HOST:0
		socket b FAMILY dgram
		send b 5 more
		send b 5 to HOST:=a more
		send b 6 more
		recv a 100
		send b 7
		recv a 100
		connect b HOST:=a
		send b 3 more
		send b 2 to HOST:1
		recv a 100
		set b udp_cork 1
		send b 3
		send b 4
		get b udp_cork
		set b udp_cork 0
		recv a 100
		recv a 100
		send b 60000 more
		send b 60000
		send b 6
		recv a 100000
	`)
}

func TestUDPBuffersAreBounded(t *testing.T) {
	w := newWorld(t, "")
	defer w.closeAll()
	w.step("socket a inet dgram")
	w.step("bind a 127.0.0.1:0")
	w.step("socket b inet dgram")
	for range 600 {
		w.step("send b 100 to 127.0.0.1:=a")
	}
	kept := [2]int{} // how many exactly depends on the kernel's version
	for a := w.sockets["a"]; pollNative(a.fd)&unix.POLLIN != 0; kept[0]++ {
		if _, errno := rawRecv(a.fd, make([]byte, 100), 0); errno != 0 {
			t.Fatal(errno)
		}
	}
	for a := w.sockets["a"].guest(); a.Ready()&unix.EPOLLIN != 0; kept[1]++ {
		if errno := a.Recv(&sock.Incoming{Data: make([]byte, 100)}); errno != 0 {
			t.Fatal(errno)
		}
	}
	t.Logf("the host keeps %d datagrams, the guest %d", kept[0], kept[1])
	if kept[1] < kept[0]*3/4 || kept[1] > kept[0]*4/3 {
		t.Errorf("the host keeps %d datagrams, the guest %d", kept[0], kept[1])
	}
}
