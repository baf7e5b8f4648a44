package kernel

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/fake"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/procfs"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// guest is a kernel with a scripted processor, and a scheduler that runs each thread as soon as it
// can. Its threads act only for tests.
type guest struct {
	t       testing.TB
	k       *Kernel
	cpu     *fake.CPU
	ready   []arch.ThreadID
	threads map[arch.ThreadID]*threadLog
	stdout  []byte
}

// threadLog holds the events of a thread that no test has checked yet.
type threadLog struct {
	results    []uint64    // of system calls
	deliveries []*Delivery // of signals
}

// guestOptions are the options of a test.
type guestOptions struct {
	uid   uint32
	cores int
}

const (
	guestMemory = 32 << 20
	guestMHz    = 1000 // a cycle is a nanosecond
	// The code of the program is one page.
	codeStart   = 0x400000
	syscallAddr = codeStart + 0x100 // of the SYSCALL instruction that threads make calls with
	handlerAddr = codeStart + 0x200 // where handlers of signals are
	restorer    = codeStart + 0x300
)

// newGuest makes a guest whose first process has one thread, and a file system with the programs
// /bin/prog and /bin/script.
func newGuest(t testing.TB, o guestOptions) *guest {
	t.Helper()
	ram, err := mem.NewRAM(guestMemory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ram.Close)
	fs, err := vfs.New(vfs.Config{RAM: ram, RootFS: programsFolder(t), Memory: kmem.New(guestMemory)})
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{t: t, cpu: &fake.CPU{}, threads: map[arch.ThreadID]*threadLog{}}
	costs := arch.Costs{}
	costs.MHz = guestMHz
	g.k = New(g.cpu, ram, fs, g, watcher{g}, costs, Config{
		Cores: max(1, o.cores), Seed: 1, UID: o.uid, GID: o.uid, EpochNS: 1_700_000_000e9, MaxMemory: guestMemory,
	})
	procfs.Mount(fs, g.k.Proc())
	program := Program{Path: "/bin/prog", Args: []string{"prog", "first"}, Env: []string{"A=1"}, Dir: "/"}
	for fd := 1; fd <= 2; fd++ {
		program.Streams[fd] = fs.OpenOutput(g, fd)
	}
	if err := g.k.Start(program); err != nil {
		t.Fatal(err)
	}
	g.run()
	return g
}

// Write implements vfs.Sink.
func (g *guest) Write(_ int, p []byte) (int, unix.Errno) {
	g.stdout = append(g.stdout, p...)
	return len(p), 0
}

// Broken implements vfs.Sink.
func (g *guest) Broken(int) bool { return false }

// programsFolder is a root file system for guests.
func programsFolder(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"bin", "tmp", "dev", "proc", "sys", "data"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		"bin/prog":   string(smallELF()),
		"bin/script": "#!/bin/prog -x\n",
		"bin/broken": "\x7fELF and nothing else",
		"data/file":  "0123456789",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// smallELF is a static program of one page (elf(5)).
func smallELF() []byte {
	const headerSize, segmentSize, size = 64, 56, 0x400
	b := make([]byte, size)
	copy(b, "\x7fELF\x02\x01\x01")
	le := binary.LittleEndian
	le.PutUint16(b[16:], 2)  // ET_EXEC
	le.PutUint16(b[18:], 62) // EM_X86_64
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[24:], codeStart+0x80) // e_entry
	le.PutUint64(b[32:], headerSize)     // e_phoff
	le.PutUint16(b[52:], headerSize)
	le.PutUint16(b[54:], segmentSize)
	le.PutUint16(b[56:], 1) // e_phnum
	p := b[headerSize:]
	le.PutUint32(p[0:], 1) // PT_LOAD
	le.PutUint32(p[4:], 5) // PF_R | PF_X
	le.PutUint64(p[16:], codeStart)
	le.PutUint64(p[24:], codeStart)
	le.PutUint64(p[32:], size)
	le.PutUint64(p[40:], size)
	le.PutUint64(p[48:], arch.PageSize)
	return b
}

// The guest is the kernel's Scheduler.

func (g *guest) Ready(t arch.ThreadID)                   { g.ready = append(g.ready, t) }
func (g *guest) Yield(arch.ThreadID)                     {}
func (g *guest) SetAffinity(arch.ThreadID, uint64)       {}
func (g *guest) SetPrecedence(arch.ThreadID, Precedence) {}
func (g *guest) Core(arch.ThreadID) arch.CoreID          { return 0 }
func (g *guest) Block(t arch.ThreadID)                   { g.unready(t) }
func (g *guest) unready(t arch.ThreadID) {
	g.ready = slices.DeleteFunc(g.ready, func(x arch.ThreadID) bool { return x == t })
}

// watcher is the kernel's Observer.
type watcher struct{ *guest }

func (w watcher) Memory(int32, [16]byte) {}

// Exit discards the results of a thread that has ended: exit(2) does not return.
func (w watcher) Exit(t arch.ThreadID, _ int) { w.log(t).results = nil }

func (w watcher) Syscall(t *Task, _ uint64, _ [linux.MaxArguments]uint64, result uint64) {
	x := w.log(t.ID())
	x.results = append(x.results, result)
}

func (w watcher) Signal(d *Delivery) {
	x := w.log(d.Thread)
	x.deliveries = append(x.deliveries, d)
}

func (g *guest) Exit(t arch.ThreadID) { g.unready(t) }

func (g *guest) log(t arch.ThreadID) *threadLog {
	x := g.threads[t]
	if x == nil {
		x = &threadLog{}
		g.threads[t] = x
	}
	return x
}

// run runs all threads until each waits, or is in user mode without a pending signal.
func (g *guest) run() {
	for again := true; again; {
		for len(g.ready) > 0 {
			id := g.ready[0]
			g.ready = g.ready[1:]
			if t := g.k.Task(id); t != nil {
				g.settle(t)
			}
		}
		again = false
		for _, t := range g.k.Tasks() {
			if g.k.Task(t.id) == t && t.state == running && t.HasKernelWork() {
				g.settle(t)
				// A traced thread has work for the kernel at all times.
				again = again || t.state != running || len(g.ready) > 0
			}
		}
	}
}

// settle makes the kernel act for a thread until it waits or is in user mode. An interrupted system call
// that Linux restarts is restarted.
func (g *guest) settle(t *Task) {
	for !g.k.Done() && t.state == running && g.k.Prepare(t) {
		if g.cpu.PC() != syscallAddr {
			return
		}
		g.k.Handle(t, g.cpu.SyscallAgain(syscallAddr))
	}
}

// call makes a thread issue a system call, and runs the guest.
func (g *guest) call(t *Task, number uint64, args ...uint64) {
	t.Load()
	g.stop(t, g.cpu.Syscall(syscallAddr, number, args...))
}

// stop passes a stop of a thread to the kernel, and runs the guest.
func (g *guest) stop(t *Task, s arch.Stop) {
	g.k.Handle(t, s)
	g.settle(t)
	g.run()
}

// pass advances the time, timer by timer.
func (g *guest) pass(ns int64) {
	end := g.k.Now() + ns
	for {
		at, ok := g.k.NextTimer()
		if !ok || at > end {
			break
		}
		g.k.FireTimers(at)
		g.run()
	}
	g.k.SetNow(end)
	g.run()
}

// burn makes a thread use processor time.
func (g *guest) burn(t *Task, ns int64) {
	t.AddUserTime(arch.Cycles(ns))
	g.pass(ns)
}

// first is the first thread of the program.
func (g *guest) first() *Task { return g.k.Task(firstID) }

// sigreturn has a thread that is in a handler return from it (sigreturn(2)): the handler's return has popped
// the address of the restorer.
func (g *guest) sigreturn(t *Task) {
	t.Load()
	var r arch.Regs
	g.cpu.Regs(&r)
	r.GPR[arch.RSP] += 8
	g.cpu.SetRegs(&r)
	g.call(t, unix.SYS_RT_SIGRETURN)
}
