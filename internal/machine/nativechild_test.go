package machine_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// nativeChild is a process of the host whose memory and registers the test sets, and which executes
// instructions one at a time under ptrace. A file has its memory: the byte at an address is the file's
// at that offset, so that the test sees stores at once. All methods are for the goroutine that made it.
type nativeChild struct {
	cmd     *exec.Cmd
	pid     int
	entry   uint64 // of a SYSCALL
	memory  *os.File
	pages   map[arch.Addr]childPage
	windows [][]byte
	xsave   []byte
}

// childPage is a page of the child: its rights, and its bytes as the test sees them.
type childPage struct {
	perm  arch.Perm
	bytes []byte
}

// memoryDescriptor is the child's descriptor of the file that has its memory.
const memoryDescriptor = 3

func newNativeChild(t *testing.T) *nativeChild {
	t.Helper()
	runtime.LockOSThread() // which ptrace demands
	t.Cleanup(runtime.UnlockOSThread)
	bin := filepath.Join(t.TempDir(), "child")
	gcc := exec.Command("gcc", "-nostdlib", "-static", "-Wl,--build-id=none", "-Wl,-Ttext-segment=0x6edb00000000", "-o", bin, "testdata/child.S")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fd, err := unix.MemfdCreate("memory", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	c := &nativeChild{memory: os.NewFile(uintptr(fd), "memory"), pages: map[arch.Addr]childPage{}, cmd: exec.Command(bin)}
	if err := c.memory.Truncate(int64(arch.UserEnd)); err != nil {
		t.Fatal(err)
	}
	c.cmd.ExtraFiles = []*os.File{c.memory}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.pid = c.cmd.Process.Pid
	t.Cleanup(c.close)
	_ = c.cmd.Wait() // for its stop after execve
	regs := c.rawRegs(t)
	c.entry = regs.Rip
	c.unmapAllElse(t)
	c.xsave = make([]byte, 1<<14)
	c.xsave = c.xsave[:c.registerSet(t, unix.PTRACE_GETREGSET, c.xsave)]
	return c
}

func (c *nativeChild) close() {
	_ = syscall.Kill(c.pid, syscall.SIGKILL)
	var ws syscall.WaitStatus
	_, _ = syscall.Wait4(c.pid, &ws, 0, nil)
	for _, w := range c.windows {
		_ = unix.Munmap(w)
	}
	c.memory.Close()
}

// unmapAllElse removes all memory but the child's own page.
func (c *nativeChild) unmapAllElse(t *testing.T) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		if from <= c.entry && c.entry < to || from >= uint64(arch.UserEnd) {
			continue
		}
		c.call(t, unix.SYS_MUNMAP, from, to-from)
	}
}

// ---- execution ----------------------------------------------------------------------------

// step executes one instruction.
func (c *nativeChild) step(t *testing.T) {
	t.Helper()
	if err := syscall.PtraceSingleStep(c.pid); err != nil {
		t.Fatal(err)
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(c.pid, &ws, 0, nil); err != nil {
		t.Fatal(err)
	}
	if !ws.Stopped() || ws.StopSignal() != syscall.SIGTRAP {
		pc := c.rawRegs(t).Rip
		t.Fatalf("the processor stopped otherwise (%#x) at %#x: %x", ws, pc, c.code(pc))
	}
}

// call has the child make a system call, which must succeed.
func (c *nativeChild) call(t *testing.T, number uint64, args ...uint64) {
	t.Helper()
	saved := c.rawRegs(t)
	regs := saved
	regs.Rip, regs.Rax, regs.Orig_rax = c.entry, number, ^uint64(0)
	for i, to := range []*uint64{&regs.Rdi, &regs.Rsi, &regs.Rdx, &regs.R10, &regs.R8, &regs.R9}[:len(args)] {
		*to = args[i]
	}
	c.setRawRegs(t, &regs)
	c.step(t)
	if result := int64(c.rawRegs(t).Rax); result < 0 && result > -4096 {
		t.Fatalf("system call %d%#x of the child: %v", number, args, syscall.Errno(-result))
	}
	c.setRawRegs(t, &saved)
}

// ---- registers ----------------------------------------------------------------------------

func (c *nativeChild) rawRegs(t *testing.T) (regs syscall.PtraceRegs) {
	t.Helper()
	if err := syscall.PtraceGetRegs(c.pid, &regs); err != nil {
		t.Fatal(err)
	}
	return regs
}

func (c *nativeChild) setRawRegs(t *testing.T, regs *syscall.PtraceRegs) {
	t.Helper()
	if err := syscall.PtraceSetRegs(c.pid, regs); err != nil {
		t.Fatal(err)
	}
}

// generalRegisters are the registers of a child in the order of arch.Regs.GPR.
func generalRegisters(r *syscall.PtraceRegs) [16]*uint64 {
	return [16]*uint64{
		&r.Rax, &r.Rcx, &r.Rdx, &r.Rbx, &r.Rsp, &r.Rbp, &r.Rsi, &r.Rdi,
		&r.R8, &r.R9, &r.R10, &r.R11, &r.R12, &r.R13, &r.R14, &r.R15,
	}
}

func (c *nativeChild) regs(t *testing.T) (to arch.Regs) {
	t.Helper()
	raw := c.rawRegs(t)
	for i, r := range generalRegisters(&raw) {
		to.GPR[i] = *r
	}
	to.RIP, to.RFLAGS, to.FSBase, to.GSBase = raw.Rip, raw.Eflags, raw.Fs_base, raw.Gs_base
	return to
}

func (c *nativeChild) setRegs(t *testing.T, from *arch.Regs) {
	t.Helper()
	raw := c.rawRegs(t)
	for i, r := range generalRegisters(&raw) {
		*r = from.GPR[i]
	}
	raw.Rip, raw.Eflags, raw.Fs_base, raw.Gs_base = from.RIP, from.RFLAGS, from.FSBase, from.GSBase
	raw.Orig_rax = ^uint64(0)
	c.setRawRegs(t, &raw)
}

// Offsets in an image of XSAVE (Intel SDM volume 1, section 13.4).
const (
	xsaveInUse = arch.FPSize
	xsaveYMM   = arch.FPSize + 64
)

// registerSet reads or writes the image of XSAVE, and returns its size.
func (c *nativeChild) registerSet(t *testing.T, request uintptr, image []byte) uint64 {
	t.Helper()
	const ntX86XState = 0x202
	iov := unix.Iovec{Base: &image[0], Len: uint64(len(image))}
	if _, _, err := syscall.Syscall6(syscall.SYS_PTRACE, request, uintptr(c.pid), ntX86XState, uintptr(unsafe.Pointer(&iov)), 0, 0); err != 0 {
		t.Fatal(err)
	}
	return iov.Len
}

// vectors returns the images of FXSAVE and of the upper halves of the YMM registers.
func (c *nativeChild) vectors(t *testing.T) (fp [arch.FPSize]byte, ymm [arch.YMMHighSize]byte) {
	t.Helper()
	c.registerSet(t, unix.PTRACE_GETREGSET, c.xsave)
	copy(fp[:], c.xsave)
	if c.xsave[xsaveInUse]&4 != 0 {
		copy(ymm[:], c.xsave[xsaveYMM:])
	}
	return fp, ymm
}

func (c *nativeChild) setVectors(t *testing.T, fp *[arch.FPSize]byte, ymm *[arch.YMMHighSize]byte) {
	t.Helper()
	clear(c.xsave[xsaveInUse:])
	copy(c.xsave, fp[:464])
	inUse := uint64(3)
	if *ymm != [arch.YMMHighSize]byte{} {
		inUse |= 4
		copy(c.xsave[xsaveYMM:], ymm[:])
	}
	binary.LittleEndian.PutUint64(c.xsave[xsaveInUse:], inUse)
	c.registerSet(t, unix.PTRACE_SETREGSET, c.xsave)
}

// ---- memory -------------------------------------------------------------------------------

// setMemory gives the child the pages of a space, with their rights and contents.
func (c *nativeChild) setMemory(t *testing.T, space *mem.Space) {
	t.Helper()
	list := space.Mappings(0, arch.UserEnd)
	present := make(map[arch.Addr]bool, len(list))
	for i := 0; i < len(list); {
		from := i
		for i++; i < len(list) && list[i].Addr == list[i-1].Addr+arch.PageSize && list[i].PTE.Perm() == list[from].PTE.Perm(); i++ {
		}
		c.mapRun(t, list[from:i])
	}
	for _, m := range list {
		present[m.Addr] = true
		if now, child := space.RAM().Bytes(m.PTE.Page()), c.pages[m.Addr].bytes; string(now) != string(child) {
			copy(child, now)
		}
	}
	for at := range c.pages {
		if !present[at] {
			c.call(t, unix.SYS_MUNMAP, uint64(at), arch.PageSize)
			delete(c.pages, at)
		}
	}
}

// mapRun maps pages in a row of the same rights, unless the child has them.
func (c *nativeChild) mapRun(t *testing.T, run []mem.Mapping) {
	t.Helper()
	perm, known := run[0].PTE.Perm(), true
	for _, m := range run {
		known = known && c.pages[m.Addr].bytes != nil && c.pages[m.Addr].perm == perm
	}
	if known {
		return
	}
	at, size := uint64(run[0].Addr), uint64(len(run))*arch.PageSize
	prot := uint64(0)
	for bit, p := range map[arch.Perm]uint64{arch.Read: unix.PROT_READ, arch.Write: unix.PROT_WRITE, arch.Exec: unix.PROT_EXEC} {
		if perm&bit != 0 {
			prot |= p
		}
	}
	c.call(t, unix.SYS_MMAP, at, size, prot, unix.MAP_SHARED|unix.MAP_FIXED, memoryDescriptor, at)
	window, err := unix.Mmap(int(c.memory.Fd()), int64(at), int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	c.windows = append(c.windows, window)
	for i, m := range run {
		c.pages[m.Addr] = childPage{perm, window[i*arch.PageSize : (i+1)*arch.PageSize]}
	}
}

// code returns the bytes at an address, up to 15 of them.
func (c *nativeChild) code(at uint64) []byte {
	var code []byte
	for end := at + 15; at < end; {
		page := c.pages[arch.Addr(at)&^(arch.PageSize-1)].bytes
		if page == nil {
			break
		}
		part := page[at%arch.PageSize:]
		part = part[:min(uint64(len(part)), end-at)]
		code = append(code, part...)
		at += uint64(len(part))
	}
	return code
}
