package emu_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// calculations is a static program that sorts, hashes, divides, calls by a table of functions, copies
// and compares strings, and multiplies matrices.
const calculations = `
typedef unsigned long u64;
static u64 list[256], state = 7;
static char text[700], copy[700];
static double matrix[3][8][8];
static u64 next(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }
static void sort(u64 *a, int n) {
  if (n < 2) return;
  u64 p = a[n / 2];
  int i = 0, j = n - 1;
  while (i <= j) {
    while (a[i] < p) i++;
    while (a[j] > p) j--;
    if (i <= j) { u64 t = a[i]; a[i++] = a[j]; a[j--] = t; }
  }
  sort(a, j + 1);
  sort(a + i, n - i);
}
static u64 divide(u64 a, u64 b) { return a / (b | 1) + a % (b | 1); }
static u64 rotate(u64 a, u64 b) { return a << (b & 63) | a >> (-b & 63); }
static u64 add(u64 a, u64 b) { static u64 sum; return __atomic_fetch_add(&sum, a + b, __ATOMIC_SEQ_CST); }
static u64 (*volatile functions[])(u64, u64) = {divide, rotate, add};
static int name(u64 n) {
  switch (n % 7) {
    case 0: return 'a';
    case 1: return 'q' + (int)(n & 3);
    case 2: return '0';
    case 3: return (int)(n >> 60);
    case 4: return -1;
    case 5: return 'x';
    default: return 'z';
  }
}
void _start(void) {
  u64 sum = 0;
  for (int i = 0; i < 256; i++) list[i] = next();
  sort(list, 256);
  for (int i = 0; i < 700; i++) text[i] = (char)name(next());
  void *to = copy, *from = text;
  u64 n = 700;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
  for (int i = 0; i < 700; i++) sum = sum * 31 + (u64)copy[i];
  for (int i = 0; i < 256; i++) sum += functions[i % 3](list[i], sum);
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++) { matrix[0][i][j] = (double)(next() % 100); matrix[1][i][j] = (double)(next() % 50) / 3; }
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++)
      for (int k = 0; k < 8; k++) matrix[2][i][j] += matrix[0][i][k] * matrix[1][k][j];
  for (int i = 0; i < 8; i++) sum += (u64)matrix[2][i][7 - i];
  __asm__ volatile("syscall" : : "a"(231), "D"(sum & 127));
  __builtin_unreachable();
}
`

func buildCalculations(t *testing.T, level string) string {
	t.Helper()
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	if err := os.WriteFile(src, []byte(calculations), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{level, "-nostdlib", "-static", "-fno-stack-protector", "-fno-tree-loop-distribute-patterns", "-mno-red-zone", "-o", bin, src}
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// newProgram is a bench with a static program.
func newProgram(t tester, bin string) *bench {
	t.Helper()
	b := newBenchOf(t, nil)
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b.Space.Unmap(0, 1<<40)
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		data := make([]byte, p.Memsz)
		if _, err := p.ReadAt(data[:p.Filesz], 0); err != nil && p.Filesz > 0 {
			t.Fatal(err)
		}
		perm := arch.Read
		if p.Flags&elf.PF_W != 0 {
			perm |= arch.Write
		}
		if p.Flags&elf.PF_X != 0 {
			perm |= arch.Exec
		}
		for at := p.Vaddr &^ (arch.PageSize - 1); at < p.Vaddr+p.Memsz; at += arch.PageSize {
			page, _ := b.RAM.Alloc()
			b.Space.Set(arch.Addr(at), mem.MakePTE(page, perm, false))
			for i := range b.RAM.Bytes(page) {
				if k := at + uint64(i) - p.Vaddr; k < p.Memsz {
					b.RAM.Bytes(page)[i] = data[k]
				}
			}
		}
	}
	for i := range arch.Addr(4) {
		b.MapPage(0x7fff_0000+i*arch.PageSize, arch.Read|arch.Write)
	}
	b.ChangeRegs(func(r *arch.Regs) { *r = arch.Regs{RIP: f.Entry, RFLAGS: 0x202}; r.GPR[arch.RSP] = 0x7fff_3000 })
	return b
}

// logged is what the logs of a program have.
type logged struct {
	stops        []arch.Stop
	words        []emu.BranchWord
	instructions []uint64
	code         map[arch.Addr]byte
	branches     uint64
}

// runProgram runs a program to its end in pieces, with logs.
func runProgram(t tester, bin string, limit arch.Limit, timed, counts bool) (l logged) {
	b := newProgram(t, bin)
	var err error
	if counts {
		err = b.CPU.CountBranches()
	} else if err = b.CPU.LogBranches(timed); err == nil {
		err = b.CPU.LogInstructions()
	}
	if err != nil {
		t.Fatal(err)
	}
	l.code = map[arch.Addr]byte{}
	for len(l.stops) == 0 || l.stops[len(l.stops)-1].Reason != arch.StopSyscall {
		s := b.CPU.Run(limit)
		l.stops = append(l.stops, arch.Stop{Reason: s.Reason, Instructions: s.Instructions, Cycles: s.Cycles, Repeated: s.Repeated})
		if s.Reason != arch.StopBudget && s.Reason != arch.StopSyscall {
			t.Fatalf("%+v", s)
		}
		if counts {
			continue
		}
		pcs, err := b.CPU.TakeInstructions(s.Instructions - s.Repeated)
		if err != nil {
			t.Fatal(err)
		}
		l.instructions = append(l.instructions, pcs...)
		l.words = append(l.words, b.CPU.Branches()...)
		for c := range b.CPU.Code {
			for i, v := range c.Bytes {
				l.code[c.PC+arch.Addr(i)] = v
			}
		}
		for _, pc := range pcs {
			if _, ok := l.code[arch.Addr(pc)]; !ok {
				t.Fatalf("the code at %#x is not in the log", pc)
			}
		}
		b.CPU.Drained()
	}
	l.branches = b.CPU.CountedBranches()
	return l
}

// TestLogsOfPrograms: both engines have the same words with the same times, and the same
// instructions. Where runs are cut does not matter to the counts.
func TestLogsOfPrograms(t *testing.T) {
	for _, level := range testsize.Sample([]string{"-O2", "-O0", "-O3", "-Os"}, 2, 0) {
		bin := buildCalculations(t, level)
		for _, timed := range []bool{false, true} {
			for _, limit := range []arch.Limit{{Instructions: 20_000}, {Instructions: 997}, {Cycles: 3001, Exact: true}} {
				var all [2]logged
				for i, e := range engines {
					all[i] = runProgram(tester{t, e.open}, bin, limit, timed, false)
				}
				a, b := all[0], all[1]
				if !slices.Equal(a.stops, b.stops) {
					k := 0
					for k < min(len(a.stops), len(b.stops)) && a.stops[k] == b.stops[k] {
						k++
					}
					t.Fatalf("%s, %+v: stops differ from %d on: %+v and %+v", level, limit, k, a.stops[k], b.stops[k])
				}
				if !slices.Equal(a.instructions, b.instructions) {
					t.Errorf("%s, %+v: %d instructions and %d", level, limit, len(a.instructions), len(b.instructions))
				}
				if !slices.Equal(a.words, b.words) {
					k := 0
					for k < min(len(a.words), len(b.words)) && a.words[k] == b.words[k] {
						k++
					}
					t.Errorf("%s, timed %v, %+v: %d and %d words differ from %d on", level, timed, limit, len(a.words), len(b.words), k)
				}
				if a.branches != b.branches {
					t.Errorf("%s, %+v: %d branches and %d", level, limit, a.branches, b.branches)
				}
			}
		}
		var counts [2]uint64
		for i, e := range engines {
			counts[i] = runProgram(tester{t, e.open}, bin, arch.Limit{Instructions: 997}, false, true).branches
		}
		if want := runProgram(tester{t, engines[0].open}, bin, arch.Limit{}, false, false).branches; counts != [2]uint64{want, want} {
			t.Errorf("%s: counted %v branches, logged %d", level, counts, want)
		}
		t.Logf("%s: %d branches", level, counts[0])
	}
}

// TestMemoryLogOfPrograms: both engines have the same accesses, with the same branches before them,
// and what a model of memory has for each load.
func TestMemoryLogOfPrograms(t *testing.T) {
	for _, level := range testsize.Sample([]string{"-O3", "-O0", "-O2", "-Os"}, 2, 0) {
		bin := buildCalculations(t, level)
		for _, limit := range []arch.Limit{{Instructions: 20_000}, {Instructions: 997}, {Cycles: 3001, Exact: true}} {
			var all [2][]string
			for i, e := range engines {
				b := newProgram(tester{t, e.open}, bin)
				m := b.LogMemory(memlog.Filter{})
				m.Branches = true
				for s := (arch.Stop{}); s.Reason != arch.StopSyscall; {
					s = m.RunToStop(limit)
				}
				all[i] = m.Lines
			}
			for k := range min(len(all[0]), len(all[1])) {
				if all[0][k] != all[1][k] {
					t.Fatalf("%s, %+v: access %d is %s and %s", level, limit, k, all[0][k], all[1][k])
				}
			}
			if len(all[0]) != len(all[1]) {
				t.Errorf("%s, %+v: %d accesses and %d", level, limit, len(all[0]), len(all[1]))
			}
			t.Logf("%s: %d accesses", level, len(all[0]))
		}
	}
}
