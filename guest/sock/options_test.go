package sock_test

import (
	"maps"
	"slices"
	"testing"
)

// all continues after a difference.
type all struct{ *testing.T }

func (a all) Fatalf(format string, args ...any) {
	a.Helper()
	a.Errorf(format, args...)
}

func TestOptions(t *testing.T) {
	for _, f := range []string{"inet stream", "inet dgram", "inet6 stream", "inet6 dgram", "unix stream", "unix dgram", "unix seqpacket"} {
		t.Run(f, func(t *testing.T) {
			w := newWorld(all{t}, "")
			defer w.closeAll()
			w.step("socket s " + f)
			for _, name := range slices.Sorted(maps.Keys(optionNames)) {
				w.history = nil
				w.step("get s " + name)
				for _, v := range []string{"short", "1", "0", "-1", "1000", "77", "100000", "1,5", "0,9", "long,3,500000", "long,0,0", "long,1,1000000", "long,-1,0"} {
					switch { // options with restricted rights, unsupported ones, and an overflow
					case name == "peek_off", name == "priority" && v != "1" && v != "0", name == "linger" && v == "long,-1,0":
						continue
					}
					w.step("set s " + name + " " + v)
					w.step("get s " + name)
				}
			}
		})
	}
}

func TestTCPOptionsOfConnections(t *testing.T) {
	overBoth(t, `
		socket l FAMILY stream
		set l nodelay 1
		set l keepalive 1
		set l reuseaddr 1
		set l rcvtimeo long,1,0
		bind l HOST:0
		listen l 5
		socket c FAMILY stream
		get c type
		get c domain
		get c protocol
		connect c HOST:=l
		accept l s
		get s nodelay
		get s keepalive
		get s reuseaddr
		get s rcvtimeo
		get s protocol
		get c nodelay
		get c peercred
		ioctl c outq
		ioctl c nosuch
	`)
}
