package direct

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// freestanding is a C program without a library: it sorts, hashes, divides and computes in
// floating point, and exits with a status that depends on all of it.
const freestanding = `
typedef unsigned long u64;
static u64 seed = SEED;
static u64 next(void) { seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17; return seed; }
static u64 list[512];
static double matrix[3][12][12];
static char text[2048];
static void sort(u64 *a, long n) {
  if (n < 2) return;
  u64 pivot = a[n / 2];
  long i = 0, j = n - 1;
  while (i <= j) {
    while (a[i] < pivot) i++;
    while (a[j] > pivot) j--;
    if (i <= j) { u64 t = a[i]; a[i++] = a[j]; a[j--] = t; }
  }
  sort(a, j + 1);
  sort(a + i, n - i);
}
static u64 apply(u64 (*f)(u64, u64), u64 a, u64 b) { return f(a, b); }
static u64 divide(u64 a, u64 b) { return a / (b | 1) + a % (b | 1); }
static u64 rotate(u64 a, u64 b) { return a << (b & 63) | a >> (-b & 63); }
static u64 (*volatile functions[])(u64, u64) = {divide, rotate};
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
  for (int i = 0; i < 512; i++) list[i] = next();
  sort(list, 512);
  for (int i = 0; i < 2048; i++) text[i] = (char)name(next());
  for (int i = 0; i < 2048; i++) sum = sum * 31 + (u64)text[i];
  for (int i = 0; i < 512; i++) sum += apply(functions[i & 1], list[i], sum);
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < 12; j++) { matrix[0][i][j] = (double)(next() % 100); matrix[1][i][j] = (double)(next() % 50) / 3; }
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < 12; j++)
      for (int k = 0; k < 12; k++) matrix[2][i][j] += matrix[0][i][k] * matrix[1][k][j];
  for (int i = 0; i < 12; i++) sum += (u64)matrix[2][i][11 - i];
  __asm__ volatile("syscall" : : "a"(231), "D"(sum & 127));
  __builtin_unreachable();
}
`

func buildFreestanding(t *testing.T, seed, level string) string {
	t.Helper()
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	if err := os.WriteFile(src, []byte(freestanding), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{level, "-DSEED=" + seed, "-nostdlib", "-static", "-fno-stack-protector", "-fno-tree-loop-distribute-patterns", "-mno-red-zone", "-o", bin, src}
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// countBySteps runs the program under ptrace, one instruction at a time.
func countBySteps(t *testing.T, bin string) (instructions uint64, status int) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(bin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for {
		var ws syscall.WaitStatus
		if err := syscall.PtraceSingleStep(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		if _, err := syscall.Wait4(cmd.Process.Pid, &ws, 0, nil); err != nil {
			t.Fatal(err)
		}
		instructions++
		if ws.Exited() {
			return instructions, ws.ExitStatus()
		}
	}
}

// loadProgram maps a static program and a stack.
func loadProgram(t *testing.T, b *bench, bin string) {
	t.Helper()
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
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
		first := p.Vaddr &^ (arch.PageSize - 1)
		for at := first; at < p.Vaddr+p.Memsz; at += arch.PageSize {
			page, _ := b.ram.Alloc()
			b.space.Set(arch.Addr(at), mem.MakePTE(page, perm, false))
			bytes := b.ram.Bytes(page)
			for i := range bytes {
				if k := at + uint64(i) - p.Vaddr; k < p.Memsz {
					bytes[i] = data[k]
				}
			}
		}
	}
	for i := range arch.Addr(16) {
		b.mapPage(0x7fff_0000+i*arch.PageSize, arch.Read|arch.Write)
	}
	b.setRegs(func(r *arch.Regs) { *r = arch.Regs{RIP: f.Entry, RFLAGS: 0x202}; r.GPR[arch.RSP] = 0x7fff_f000 })
}

// TestCountsAgainstPtrace runs static programs here, in pieces, and under ptrace: the counts of instructions and
// the results are equal.
func TestCountsAgainstPtrace(t *testing.T) {
	testsize.SkipQuick(t)
	levels := []string{"-O2", "-O0", "-O1", "-O3", "-Os"}
	for i, level := range testsize.Sample(levels, 2, 0) {
		seed := string(binary.LittleEndian.AppendUint16(nil, uint16('1'+i)|'7'<<8))
		bin := buildFreestanding(t, seed, level)
		want, status := countBySteps(t, bin)
		for _, limit := range []arch.Limit{{}, {Instructions: 997}, {Instructions: 1009, Exact: true}} {
			b := newBench(t, "nop")
			loadProgram(t, b, bin)
			var got uint64
			for {
				s := b.cpu.Run(limit)
				got += s.Instructions
				if s.Reason == arch.StopSyscall {
					break
				}
				if s.Reason != arch.StopBudget {
					t.Fatalf("%s: %+v", level, s)
				}
			}
			if r := b.regs(); got != want || int(r.GPR[arch.RDI]) != status {
				t.Errorf("%s, %+v: %d instructions, status %d; under ptrace %d and %d", level, limit, got, r.GPR[arch.RDI], want, status)
			}
		}
		t.Logf("%s: %d instructions", level, want)
	}
}
