package oscalls

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSignalStacks: what sigaltstack(2) asks for is what was set before, as the manual page says.
func TestSignalStacks(t *testing.T) {
	memory := map[uint64][]byte{}
	thread := Thread{
		ID: 7, Affinity: 5, Signals: &SignalStack{},
		Write: func(addr uint64, b []byte) { memory[addr] = append([]byte{}, b...) },
		Read:  func(addr uint64, b []byte) bool { return copy(b, memory[addr]) == len(b) },
	}
	call := func(number, a, b, c uint64) uint64 {
		t.Helper()
		result, is, err := thread.Result(number, &[6]uint64{a, b, c})
		if !is || err != nil {
			t.Fatalf("call %d: %v, %v", number, is, err)
		}
		return result
	}
	const old, next = 0x1000, 0x2000
	call(unix.SYS_SIGALTSTACK, 0, old, 0)
	if flags := binary.LittleEndian.Uint32(memory[old][8:]); flags != ssDisable {
		t.Errorf("a thread begins with a stack for signals: flags %d", flags)
	}
	memory[next] = make([]byte, stackBytes)
	binary.LittleEndian.PutUint64(memory[next], 0xabc000)
	binary.LittleEndian.PutUint64(memory[next][16:], 8192)
	call(unix.SYS_SIGALTSTACK, next, 0, 0)
	call(unix.SYS_SIGALTSTACK, 0, old, 0)
	if string(memory[old]) != string(memory[next]) {
		t.Errorf("the stack is %x, not %x", memory[old], memory[next])
	}
	if n := call(unix.SYS_SCHED_GETAFFINITY, 0, 128, old); n != 8 || memory[old][0] != 5 {
		t.Errorf("cores: %d bytes, %x", n, memory[old])
	}
	invalid := unix.EINVAL
	if n := call(unix.SYS_SCHED_GETAFFINITY, 7, 4, old); n != -uint64(invalid) {
		t.Errorf("a set of 4 bytes: %d", int64(n))
	}
	if id := call(unix.SYS_GETTID, 0, 0, 0); id != 7 {
		t.Errorf("the thread is %d", id)
	}
	thread.Signals.Unknown = true
	if _, _, err := thread.Result(unix.SYS_SIGALTSTACK, &[6]uint64{0, old}); err == nil {
		t.Error("a stack that is not known is known")
	}
	if _, _, err := thread.Result(unix.SYS_SCHED_GETAFFINITY, &[6]uint64{8, 8, old}); err == nil {
		t.Error("the cores of another thread are known")
	}
}
