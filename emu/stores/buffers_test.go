package stores_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"pgregory.net/rapid"
)

// newBuffered makes a bench whose stores are buffered.
func newBuffered(t testing.TB, e engine, capacity int, source string) (*bench, emu.Buffers) {
	t.Helper()
	b := e.newBench(t, source)
	buffers, err := b.CPU.BufferStores(capacity)
	if err != nil {
		t.Fatal(err)
	}
	return b, buffers
}

func (b *bench) readBytes(at arch.Addr, n int) []byte {
	out := make([]byte, n)
	if done, fault := b.Space.ReadAt(out, at); done != n {
		b.Fatalf("%#x cannot be read: %v", at, fault)
	}
	return out
}

func (b *bench) runExactly(n uint64) arch.Stop {
	return b.CPU.Run(arch.Limit{Instructions: n, Exact: true, Pass: true})
}

// splitByLines divides a store into parts that lie in one cache line each.
func splitByLines(at arch.Addr, data []byte) (parts []emu.Store) {
	for len(data) > 0 {
		s := emu.Store{Addr: at}
		s.Size = uint32(copy(s.Data[:], data[:min(len(data), 64-int(at%64))]))
		parts = append(parts, s)
		at, data = at+arch.Addr(s.Size), data[s.Size:]
	}
	return parts
}

// TestStoresWait runs stores of every kind. Before a commit, the memory that other cores see does
// not change and the core's own loads see the stores. The stores are returned in order with their
// bytes, those into two cache lines in two parts.
func TestStoresWait(t *testing.T) { onEngines(t, testStoresWait) }

func testStoresWait(t *testing.T, e engine) {
	b, buffers := newBuffered(t, e, 0, `
		mov rax, 0x1122334455667788
		mov [0x600000], al
		mov [0x600002], ax
		mov [0x600001], eax
		mov [0x600ffd], rax
		movq xmm0, rax
		pshufd xmm0, xmm0, 0x44
		movups [0x600ff9], xmm0
		mov rbx, [0x600000]
		mov rcx, [0x600ffd]
		syscall`)
	for range 2 { // the second time the pages are in the engine's cache
		b.ChangeRegs(func(r *arch.Regs) { r.RIP = uint64(codeBase) })
		before := b.readBytes(dataBase, 2*arch.PageSize)
		buffers.Apply(nil)
		b.ExpectStop(b.runExactly(10), arch.StopBudget, b.Regs().RIP, 10)
		if r := b.Regs(); r.GPR[arch.RBX] != 0x0000_0055_6677_8888 || r.GPR[arch.RCX] != 0x5566_7788_1122_3344 {
			t.Errorf("the core loads %#x and %#x", r.GPR[arch.RBX], r.GPR[arch.RCX])
		}
		stores := buffers.Withdraw(nil)
		if got, want := fmt.Sprint(stores), "[0x600000=88 0x600002=8877 0x600001=88776655 0x600ffd=887766 0x601000=5544332211 0x600ff9=88776655443322 0x601000=11 0x601001=8877665544332211]"; got != want {
			t.Errorf("stores %s, want %s", got, want)
		}
		if !bytes.Equal(b.readBytes(dataBase, 2*arch.PageSize), before) {
			t.Error("others see stores that were not committed")
		}
		if !buffers.Apply(stores) || b.readBytes(dataBase+0xffd, 1)[0] != 0x44 {
			t.Error("the core does not see its stores again")
		}
		if again := buffers.Withdraw(nil); fmt.Sprint(again) != fmt.Sprint(stores) {
			t.Errorf("laid and parked again: %v, want %v", again, stores)
		}
	}
}

// TestRandomStores compares with a copy of memory that the test maintains.
func TestRandomStores(t *testing.T) { onEngines(t, testRandomStores) }

func testRandomStores(t *testing.T, e engine) {
	type store struct{ at, size int }
	random := rapid.Custom(func(rt *rapid.T) store {
		return store{rapid.IntRange(4080, 4110).Draw(rt, "at"), rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(rt, "size")}
	})
	for seed := range 20 {
		stores := rapid.SliceOfN(random, 1, 60).Example(seed)
		n := len(stores)
		var source strings.Builder
		source.WriteString("mov rax, 0x0102030405060708\n")
		for _, s := range stores {
			reg := map[int]string{1: "al", 2: "ax", 4: "eax", 8: "rax"}[s.size]
			fmt.Fprintf(&source, "rol rax, 8\nmov [%d], %s\n", int(dataBase)+s.at, reg)
		}
		capacity := seed % 6
		b, buffers := newBuffered(t, e, capacity, source.String()+"syscall")
		shared, view := make([]byte, 2*arch.PageSize), make([]byte, 2*arch.PageSize)
		value := uint64(0x0102030405060708)
		var parts []emu.Store
		for _, s := range stores {
			value = value<<8 | value>>56
			data := make([]byte, s.size)
			for k := range data {
				data[k] = byte(value >> (8 * k))
			}
			copy(view[s.at:], data)
			parts = append(parts, splitByLines(dataBase+arch.Addr(s.at), data)...)
		}
		var want []string
		for i, p := range parts {
			if capacity > 0 && i < len(parts)-capacity {
				copy(shared[p.Addr-dataBase:], p.Data[:p.Size])
			} else {
				want = append(want, p.String())
			}
		}
		buffers.Apply(nil)
		b.runExactly(uint64(1 + 2*n))
		if !bytes.Equal(b.readBytes(dataBase, 2*arch.PageSize), view) {
			t.Fatalf("the core sees other bytes than it stored")
		}
		if got := fmt.Sprint(buffers.Withdraw(nil)); got != "["+strings.Join(want, " ")+"]" {
			t.Fatalf("stores %s, want %v", got, want)
		}
		if !bytes.Equal(b.readBytes(dataBase, 2*arch.PageSize), shared) {
			t.Fatalf("others see other bytes than were committed")
		}
	}
}

// TestInstructionsThatDrain runs one store, an instruction and another store.
func TestInstructionsThatDrain(t *testing.T) { onEngines(t, testInstructionsThatDrain) }

func testInstructionsThatDrain(t *testing.T, e engine) {
	for _, c := range []struct {
		between string
		want    int // number of stores that wait afterwards
		weak    bool
	}{
		{"nop", 2, false},
		{"lock inc dword ptr [0x600100]", 1, false},
		{"xchg [0x600100], ebx", 1, false},
		{"lock cmpxchg [0x600100], ebx", 1, false},
		{"mfence", 1, false},
		{"cpuid", 1, false},
		{"sfence", 3, false}, // a fence between the two
		{"lfence", 2, false},
		{"inc dword ptr [0x600100]", 3, false},
		{"movnti [0x600100], ebx", 3, true},
		{"xchg eax, ebx", 2, false},
	} {
		b, buffers := newBuffered(t, e, 0, "mov [0x600000], eax\n"+c.between+"\nmov [0x600008], eax\nsyscall")
		buffers.Apply(nil)
		if s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopSyscall {
			t.Fatalf("%s: stopped for reason %d", c.between, s.Reason)
		}
		stores := buffers.Withdraw(nil)
		if len(stores) != c.want {
			t.Errorf("%s: %d stores wait, want %d: %v", c.between, len(stores), c.want, stores)
		}
		if c.weak && stores[1].Weak == 0 {
			t.Errorf("%s: not weak", c.between)
		}
	}
}

// TestRepeatedStores expects one store for each iteration.
func TestRepeatedStores(t *testing.T) { onEngines(t, testRepeatedStores) }

func testRepeatedStores(t *testing.T, e engine) {
	b, buffers := newBuffered(t, e, 0, "mov edi, 0x600ffe\nmov ecx, 4\nmov eax, 7\nrep stosb\nsyscall")
	buffers.Apply(nil)
	b.CPU.Run(arch.Limit{})
	if got, want := fmt.Sprint(buffers.Withdraw(nil)), "[0x600ffe=07 0x600fff=07 0x601000=07 0x601001=07]"; got != want {
		t.Errorf("stores %s, want %s", got, want)
	}
}

// TestFaultingStoresDoNotWait expects that a store which faults, whether in its first or its second
// page, is made once, after the page was supplied.
func TestFaultingStoresDoNotWait(t *testing.T) { onEngines(t, testFaultingStoresDoNotWait) }

func testFaultingStoresDoNotWait(t *testing.T, e engine) {
	for _, at := range []arch.Addr{dataBase + 4*arch.PageSize, dataBase + 4*arch.PageSize - 3} {
		b, buffers := newBuffered(t, e, 0, fmt.Sprintf("mov rax, -1\nmov [%d], rax\nsyscall", at))
		buffers.Apply(nil)
		if s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopFault {
			t.Fatalf("%#x: stopped for reason %d", uint64(at), s.Reason)
		}
		if stores := buffers.Withdraw(nil); len(stores) != 0 {
			t.Errorf("%#x: %v wait, and nothing was stored", uint64(at), stores)
		}
		buffers.Apply(nil)
		b.MapPage(dataBase+4*arch.PageSize, arch.Read|arch.Write)
		if s := b.CPU.Resume(); s.Reason != arch.StopSyscall {
			t.Fatalf("%#x: stopped for reason %d", uint64(at), s.Reason)
		}
		if got, want := fmt.Sprint(buffers.Withdraw(nil)), fmt.Sprint(splitByLines(at, bytes.Repeat([]byte{0xff}, 8))); got != want {
			t.Errorf("stores %s, want %s", got, want)
		}
	}
}

// TestStoresAcrossUntouchedPages expects that the first store to a page of zeros replaces the page,
// also if it is the second page of the store.
func TestStoresAcrossUntouchedPages(t *testing.T) { onEngines(t, testStoresAcrossUntouchedPages) }

func testStoresAcrossUntouchedPages(t *testing.T, e engine) {
	const at arch.Addr = 0x700000
	b, buffers := newBuffered(t, e, 0, fmt.Sprintf("mov rax, 0x0807060504030201\nmov [%d], rax\nmov rbx, [%d]\nsyscall", at+arch.PageSize-3, at+arch.PageSize))
	b.Space.FillZero(at, at+2*arch.PageSize, arch.Read|arch.Write)
	buffers.Apply(nil)
	b.CPU.Run(arch.Limit{})
	if got := b.Regs().GPR[arch.RBX]; got != 0x0807060504 {
		t.Errorf("the core loads %#x", got)
	}
	if got, want := fmt.Sprint(buffers.Withdraw(nil)), "[0x700ffd=010203 0x701000=0405060708]"; got != want {
		t.Errorf("stores %s, want %s", got, want)
	}
	if others := b.readBytes(at, 2*arch.PageSize); !bytes.Equal(others, make([]byte, 2*arch.PageSize)) {
		t.Error("others see a store that was not committed")
	}
}

// TestStoresByTwoAddresses writes one page at two addresses.
func TestStoresByTwoAddresses(t *testing.T) { onEngines(t, testStoresByTwoAddresses) }

func testStoresByTwoAddresses(t *testing.T, e engine) {
	b, buffers := newBuffered(t, e, 0, "mov eax, 5\nmov [0x600000], al\nmov [0x610000], al\nmov [0x600001], al\nmov bl, [0x610001]\nmov [0x610002], bl\nsyscall")
	p := b.Space.Get(dataBase).Page()
	b.RAM.Ref(p)
	b.Space.Set(dataBase, mem.MakePTE(p, arch.Read|arch.Write, true))
	b.RAM.Ref(p)
	b.Space.Set(0x610000, mem.MakePTE(p, arch.Read|arch.Write, true))
	buffers.Apply(nil)
	b.CPU.Run(arch.Limit{})
	for i, s := range buffers.Withdraw(nil) {
		if want := []arch.Addr{0, 0, 1, 2}[i]; s.Addr%arch.PageSize != want || s.Data[0] != 5 || b.Space.Get(s.Addr).Page() != p {
			t.Errorf("store %d is %v, want 5 at offset %d of the page", i, s, want)
		}
	}
}

func TestStoreLayout(t *testing.T) {
	if size := unsafe.Sizeof(emu.Store{}); size != 32 {
		t.Errorf("a emu.Store has %d bytes; struct heddle_store has 32", size)
	}
}
