package sock

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzAddress: an address that Parse accepts is encoded to bytes that decode to the same bytes.
func FuzzAddress(f *testing.F) {
	families := []int{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	f.Add([]byte{1, 0, '/', 't', 'm', 'p', 0}, uint8(0))
	f.Add([]byte{1, 0, 0, 'a'}, uint8(0))
	f.Add([]byte{2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}, uint8(1))
	f.Add(append([]byte{10, 0, 0, 80}, make([]byte, 24)...), uint8(2))
	f.Add([]byte{16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, uint8(3))
	f.Fuzz(func(t *testing.T, raw []byte, which uint8) {
		family := families[int(which)%len(families)]
		a, errno := Parse(raw, family)
		if errno != 0 {
			return
		}
		encoded := a.Bytes(family)
		b, errno := Parse(encoded, family)
		if errno != 0 {
			t.Fatalf("%x, encoded as %x, is refused: %v", raw, encoded, errno)
		}
		if again := b.Bytes(family); !bytes.Equal(again, encoded) {
			t.Errorf("%x becomes %x, then %x", raw, encoded, again)
		}
	})
}
