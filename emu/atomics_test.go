package emu_test

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// atomically executes atomic instructions and fences in a loop, one of them on a page that faults
// once, with ordinary instructions between them.
const atomically = `
	mov ebx, 40
	mov rdi, 0x600000
	mov rsi, 0x610000
again:
	mov eax, 1
	lock xadd [rdi+8], eax
	add rcx, 2
	xchg [rdi+16], al
	xchg rax, rcx
	mfence
	lock inc word ptr [rsi]
	nop
	mov eax, [rdi]
	test ebx, 1
	jz 1f
	lock cmpxchg16b [rdi+32]
1:	lfence
	dec ebx
	jnz again
	syscall
`

// expectedAtomics is the log of one iteration of the loop, derived from the program's text.
func expectedAtomics() (list []emu.Atomic) {
	for ebx := 40; ebx > 0; ebx-- {
		list = append(list,
			emu.Atomic{Addr: 0x600008, Size: 4}, emu.Atomic{Addr: 0x600010, Size: 1}, emu.Atomic{}, emu.Atomic{Addr: 0x610000, Size: 2})
		if ebx%2 == 1 {
			list = append(list, emu.Atomic{Addr: 0x600020, Size: 16})
		}
		list = append(list, emu.Atomic{})
	}
	return list
}

// TestAtomicLog compares the log with the program for different budgets of runs, and the stops with
// those of runs without a log.
func TestAtomicLog(t *testing.T) { onEngines(t, testAtomicLog) }

func testAtomicLog(t tester) {
	for _, l := range []arch.Limit{{}, {Instructions: 7}, {Instructions: 7, Exact: true}, {Cycles: 31}} {
		l.Pass = true
		plain, _ := runAtomically(t, l, false)
		logged, atomics := runAtomically(t, l, true)
		if !slices.Equal(plain, logged) {
			t.Errorf("limit %+v: stops with a log %+v, without %+v", l, logged, plain)
		}
		want := expectedAtomics()
		same := slices.EqualFunc(atomics, want, func(a, b emu.Atomic) bool { return a.Addr == b.Addr && a.Size == b.Size })
		if !same {
			t.Errorf("limit %+v: logged %+v", l, atomics)
		}
	}
}

func runAtomically(t tester, l arch.Limit, log bool) (stops []arch.Stop, atomics []emu.Atomic) {
	b := newBench(t, atomically)
	if log {
		if err := b.CPU.LogAtomics(); err != nil {
			t.Fatal(err)
		}
	}
	var retired uint64
	moments := []uint64{}
	for {
		s := b.CPU.Run(l)
		for {
			for a := (emu.Atomic{}); b.CPU.TakeAtomic(&a); {
				atomics = append(atomics, a)
				moments = append(moments, retired+s.Instructions-a.Before)
			}
			if s.Reason != arch.StopFault {
				break
			}
			b.MapPage(arch.Addr(0x610000), arch.Read|arch.Write)
			s = b.CPU.Resume()
		}
		retired += s.Instructions
		stops = append(stops, s)
		if s.Reason == arch.StopSyscall {
			break
		}
	}
	if log && (moments[0] != 4 || !slices.IsSorted(moments)) {
		t.Errorf("atomic instructions at %v", moments)
	}
	return stops, atomics
}

// TestMutedAtomics expects an empty log, and that the block is not executed one instruction at a
// time.
func TestMutedAtomics(t *testing.T) { onEngines(t, testMutedAtomics) }

func testMutedAtomics(t tester) {
	b := newBench(t, "mov rdi, 0x600000\n lock inc dword ptr [rdi]\n syscall")
	if err := b.CPU.LogAtomics(); err != nil {
		t.Fatal(err)
	}
	b.CPU.MuteAtomics(true)
	b.ExpectStop(b.CPU.Run(arch.Limit{}), arch.StopSyscall, uint64(codeBase)+12, 3)
	for a := (emu.Atomic{}); b.CPU.TakeAtomic(&a); {
		t.Errorf("logged %+v", a)
	}
}

// TestGatedAtomics expects a stop before each atomic instruction, another after it with the
// instruction in the log, and no other difference.
func TestGatedAtomics(t *testing.T) { onEngines(t, testGatedAtomics) }

func testGatedAtomics(t tester) {
	for _, l := range []arch.Limit{{}, {Instructions: 7, Exact: true, Pass: true}, {Instructions: 3, Pass: true}} {
		want, logged := runAtomically(t, l, true)
		b := newBench(t, atomically)
		if err := b.CPU.LogAtomics(); err != nil {
			t.Fatal(err)
		}
		b.CPU.GateAtomics()
		var stops []arch.Stop
		var before, behind int
		for len(stops) == 0 || stops[len(stops)-1].Reason != arch.StopSyscall {
			for s := b.CPU.Run(l); ; s = b.CPU.Resume() {
				n := 0
				for a := (emu.Atomic{}); b.CPU.TakeAtomic(&a); n++ {
					if a.Before > 1 {
						t.Errorf("the stop is %d instructions behind", a.Before)
					}
				}
				behind += n
				if s.Reason == arch.StopFault {
					b.MapPage(arch.Addr(0x610000), arch.Read|arch.Write)
					continue
				}
				if b.CPU.AtAtomic() {
					if at, _, _ := b.CPU.NextAtomic(); at != logged[behind].Addr {
						t.Errorf("atomic instruction %d acts at %#x, not %#x", behind, uint64(logged[behind].Addr), uint64(at))
					}
					before++
					b.CPU.AdmitAtomic(true)
				} else if s.Reason != arch.StopBreakpoint && s.Reason != arch.StopLog {
					stops = append(stops, s)
					break
				}
			}
		}
		fences := 0
		for _, a := range logged {
			if a.Size == 0 {
				fences++
			}
		}
		if before != len(logged)-fences || behind != len(logged) || !slices.Equal(stops, want) {
			t.Errorf("%+v: %d stops before and %d behind, of %d with %d fences; stops %v, want %v",
				l, before, behind, len(logged), fences, stops, want)
		}
	}
}
