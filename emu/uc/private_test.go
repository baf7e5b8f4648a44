package uc

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// viewBench is a machine whose cores have views of their own; thread 10+k runs on
// core k.
type viewBench struct {
	*bench
	views *PrivatePages
	ctx   []arch.Context
	at    map[string]arch.Addr // of each snippet
}

// newViewBench assembles snippets of code, each of which ends with SYSCALL.
func newViewBench(t testing.TB, snippets map[string]string) *viewBench {
	t.Helper()
	v := &viewBench{at: map[string]arch.Addr{}}
	var text strings.Builder
	for name, code := range snippets {
		v.at[name] = codeBase + arch.Addr(len(v.at)*0x100)
		fmt.Fprintf(&text, ".org %#x\n%s\nsyscall\n", int(v.at[name]-codeBase), code)
	}
	v.bench = newBench(t, text.String())
	var err error
	if v.views, err = v.cpu.UsePrivatePages(); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		v.ctx = append(v.ctx, v.cpu.NewContext())
	}
	return v
}

// begin lets a core run a snippet up to its SYSCALL or the first fault.
func (v *viewBench) begin(core int, name string) arch.Stop {
	v.Helper()
	v.cpu.Load(v.ctx[core], v.space)
	v.setRegs(func(r *arch.Regs) { r.RIP, r.RFLAGS = uint64(v.at[name]), 0x202 })
	v.views.Begin(arch.CoreID(core), arch.ThreadID(10+core))
	return v.cpu.Run(arch.Limit{})
}

// run lets a core run a snippet and returns its RAX. Its buffer is not drained.
func (v *viewBench) run(core int, name string) uint64 {
	v.Helper()
	if stop := v.begin(core, name); stop.Reason != arch.StopSyscall {
		v.Fatalf("core %d in %s: stopped for reason %d (vector %d)", core, name, stop.Reason, stop.Vector)
	}
	if v.views.End() {
		v.views.Drain(arch.CoreID(core))
	}
	return v.regs().GPR[arch.RAX]
}

// share makes the pages of data such that several threads have touched them.
func (v *viewBench) share() {
	for core := range 3 {
		v.run(core, "touch")
	}
}

func (v *viewBench) waiting(want ...int) {
	v.Helper()
	for k, n := range want {
		if pages, _ := v.views.Waiting(arch.CoreID(k)); pages != n {
			v.Errorf("core %d holds %d pages, want %d", k, pages, n)
		}
	}
}

func (v *viewBench) want(what string, got, want uint64) {
	v.Helper()
	if got != want {
		v.Errorf("%s: %#x, want %#x", what, got, want)
	}
}

const touchAll = "mov al, [0x600000]\nmov al, [0x601000]\nmov al, [0x602000]"

func TestStoresWaitByPages(t *testing.T) {
	v := newViewBench(t, map[string]string{
		"touch": touchAll, "store": "mov dword ptr [0x600010], 7", "load": "mov eax, [0x600010]",
		"fence": "mfence", "lock": "lock inc dword ptr [0x601000]", "far": "mov byte ptr [0x602000], 1",
	})
	v.share()
	v.waiting(0, 0, 0)
	v.run(0, "store")
	v.waiting(1, 0, 0)
	v.want("its own store", v.run(0, "load"), 7)
	v.want("another's", v.run(1, "load"), 0)
	v.want("the kernel", uint64(v.read(dataBase+0x10, 1)[0]), 0)
	v.views.Drain(0)
	v.want("another's, drained", v.run(1, "load"), 7)
	for _, drains := range []string{"fence", "lock"} {
		v.run(2, "far")
		v.waiting(0, 0, 1)
		v.run(2, drains)
		v.waiting(0, 0, 0)
	}
}

// TestPagesOfOneThread: the first access of another thread drains what is older
// than the stores to such a page.
func TestPagesOfOneThread(t *testing.T) {
	v := newViewBench(t, map[string]string{
		"touch": "mov al, [0x600000]", "store": "mov dword ptr [0x600000], 7\nmov dword ptr [0x601000], 8",
		"own": "mov eax, [0x601000]", "load": "mov eax, [0x600000]",
	})
	v.share() // the first page only
	v.run(0, "store")
	v.waiting(1)
	v.want("older store", v.run(1, "load"), 0)
	v.want("store to the thread's own page", v.run(1, "own"), 8)
	v.waiting(0)
	v.want("older store then", v.run(1, "load"), 7)
	v.want("next reader", v.run(2, "own"), 8)
}

// TestSilentStores: a store of what is there is a store. Comparing pages would
// lose core 0's second one, and memory would end with 1 although core 0 loads 0.
func TestSilentStores(t *testing.T) {
	for name, y := range map[string]int{"one page": 0x600100, "two pages": 0x601000} {
		v := newViewBench(t, map[string]string{
			"touch": touchAll, "contend": "mov byte ptr [0x600200], 1\nmov byte ptr [0x601200], 1",
			"first":  fmt.Sprintf("mov dword ptr [%d], 1\nmov dword ptr [0x600000], 0", y),
			"second": "mov dword ptr [0x600000], 1", "x": "mov eax, [0x600000]", "y": fmt.Sprintf("mov eax, [%d]", y),
		})
		v.share()
		v.run(0, "contend")
		v.run(1, "contend") // drains core 0: pages are contended from now on
		v.views.Drain(1)
		v.run(0, "first")
		v.run(1, "second")
		if name == "one page" {
			v.waiting(1, 1)
		}
		v.views.Drain(1)
		v.want(name+": core 0 loads its own store", v.run(0, "x"), 0)
		v.want(name+": core 1 loads what was committed", v.run(1, "x"), 1)
		v.want(name+": core 1 does not see the older store", v.run(1, "y"), 0)
		v.views.Drain(0)
		v.want(name+": the last to be committed stays", v.run(1, "x"), 0)
		v.want(name+": the older store", v.run(1, "y"), 1)
	}
}

// TestNeighboursOfOnePage: cores that store to one page do not drain each other
// once that happened, see others' stores when these drain, and keep their own.
func TestNeighboursOfOnePage(t *testing.T) {
	v := newViewBench(t, map[string]string{
		"touch": touchAll, "a": "mov word ptr [0x600ffe], 0x1111\nmov rax, [0x600ffc]",
		"b": "mov dword ptr [0x600fff], 0x22222222\nmov rax, [0x600ffc]", "load": "mov rax, [0x600ffc]",
		"many": "mov ecx, 20\n1: mov [0x600000 + rcx], cl\nloop 1b",
	})
	v.share()
	v.run(0, "a")
	v.run(1, "a")
	v.waiting(0, 1)
	v.views.Drain(1)
	v.want("core 0", v.run(0, "a"), 0x11110000)
	v.want("core 1, across pages", v.run(1, "b"), 0x22222222110000|0x22<<24)
	v.waiting(1, 2)
	v.views.Drain(1)
	v.want("core 0 of both", v.run(0, "load"), 0x22222211110000)
	v.want("core 2", v.run(2, "load"), 0x22222222110000)
	v.views.Drain(0)
	v.want("at the end", v.run(2, "load"), 0x22222211110000)
	v.run(0, "a")
	v.run(1, "many") // more than is traced
	v.waiting(0, 1)
}

// TestFaultingStoresByPages: a store whose second page is not there does nothing.
func TestFaultingStoresByPages(t *testing.T) {
	v := newViewBench(t, map[string]string{
		"touch": "mov al, [0x603000]", "store": "mov rax, -1\nmov [0x603ffd], rax", "load": "mov eax, [0x603ffc]",
	})
	v.share()
	for range 2 { // the second time the page is contended
		if stop := v.begin(0, "store"); stop.Reason != arch.StopFault || stop.Page != 0x604000 {
			t.Fatalf("reason %d at %#x", stop.Reason, uint64(stop.Page))
		}
		v.views.End()
		v.views.Drain(0)
		v.want("nothing was stored", v.run(1, "load"), 0)
		v.begin(1, "store")
		v.views.End()
	}
	stop := v.begin(0, "store")
	v.mapPage(0x604000, arch.Read|arch.Write)
	if stop = v.cpu.Resume(); stop.Reason != arch.StopSyscall {
		t.Fatalf("reason %d", stop.Reason)
	}
	v.views.End()
	v.want("others", v.run(2, "load"), 0)
	v.views.Drain(0)
	v.want("drained", v.run(2, "load"), 0xffffff00)
}

// TestKernelStoresByPages: what the kernel stores to a held page is not lost.
func TestKernelStoresByPages(t *testing.T) {
	v := newViewBench(t, map[string]string{"touch": touchAll, "store": "mov byte ptr [0x600001], 2", "load": "mov eax, [0x600000]"})
	v.share()
	v.run(0, "store")
	v.want("what the kernel reads", uint64(v.read(dataBase+1, 1)[0]), 0)
	v.waiting(1)
	v.space.WriteAt([]byte{3}, dataBase+2)
	v.waiting(0)
	for core := range 3 {
		v.want("both stores", v.run(core, "load"), 0x30200)
	}
}

// TestSharedPagesAreStrong: pages of shared mappings are stored to in place, and
// the core's buffer is drained.
func TestSharedPagesAreStrong(t *testing.T) {
	v := newViewBench(t, map[string]string{
		"touch": touchAll, "store": "mov byte ptr [0x600000], 1\nmov byte ptr [0x603000], 2", "load": "mov al, [0x603000]\nmov ah, [0x600000]",
	})
	page := v.space.Get(0x603000).Page()
	v.ram.Ref(page)
	v.space.Set(0x603000, mem.MakePTE(page, arch.Read|arch.Write, true))
	v.share()
	for range 2 {
		v.run(0, "store")
		v.waiting(0)
		v.want("others", v.run(1, "load")&0xffff, 0x0102)
	}
}

// TestSavedViews: what waits is part of a snapshot.
func TestSavedViews(t *testing.T) {
	v := newViewBench(t, map[string]string{
		"touch": touchAll, "store": "mov byte ptr [0x600000], 1", "more": "mov byte ptr [0x600001], 1\nmov byte ptr [0x601000], 1",
		"load": "mov eax, [0x600000]",
	})
	v.share()
	v.run(0, "store")
	used := v.ram.Used()
	before, saved := v.space.Clone(), v.views.Save()
	v.run(0, "more")
	v.run(1, "store")
	v.waiting(0, 1)
	for range 2 {
		live := before.Clone()
		saved.Load(func(arch.ThreadID) *mem.Space { return live })
		v.space.Release()
		v.space = live
		v.waiting(1, 0)
		v.want("own", v.run(0, "load"), 1)
		v.want("others", v.run(1, "load"), 0)
		v.run(0, "more")
		v.waiting(2, 0)
		v.views.Drain(0)
		v.want("drained", v.run(1, "load"), 0x101)
	}
	saved.Release()
	before.Release()
	if got := v.ram.Used(); got != used {
		t.Errorf("%d pages are used, %d before", got, used)
	}
}

// TestSpacesTakeWhatWaits: a space that is gone is not stored to.
func TestSpacesTakeWhatWaits(t *testing.T) {
	v := newViewBench(t, map[string]string{"touch": touchAll, "store": "mov byte ptr [0x600000], 1"})
	v.share()
	v.run(0, "store")
	v.space.Unmap(dataBase, dataBase+arch.PageSize)
	v.mapPage(dataBase, arch.Read|arch.Write)
	v.views.Drain(0)
	v.want("a new page at the address", uint64(v.read(dataBase, 1)[0]), 0)
	v.share()
	v.run(0, "store")
	v.waiting(1)
	v.space.Release()
	v.waiting(0)
}

func TestViewsAreAlone(t *testing.T) {
	b, _ := newBuffered(t, 0, "syscall")
	if _, err := b.cpu.UsePrivatePages(); err == nil {
		t.Error("two engines for stores at once")
	}
}

// TestDrainsIgnoreRights: a debugger's watchpoint takes rights from a page, and
// what waits for it comes there all the same.
func TestDrainsIgnoreRights(t *testing.T) {
	v := newViewBench(t, map[string]string{"touch": touchAll, "store": "mov byte ptr [0x600000], 1", "load": "mov eax, [0x600000]"})
	v.share()
	v.run(0, "store")
	v.space.Protect(dataBase, dataBase+arch.PageSize, arch.Read)
	v.views.Drain(0)
	v.want("drained", v.run(1, "load"), 1)
}

// TestStoresAreFound: of a contended page an instruction's core holds the bytes that
// it stores to, and no others: what another core has committed around them since
// stays when it drains.
func TestStoresAreFound(t *testing.T) {
	for code, want := range map[string]string{
		"mov byte ptr [0x600800], 0xaa":                                                    "aa",
		"mov rax, -1\nmov fs:[0], eax":                                                     "ffffffff",
		"mov eax, 0x600800\nadd dword ptr [eax], 0x01020304":                               "04030201",
		"mov ecx, 0x100600800 - 0x100000000\nmov rax, -1\nmov [ecx*1], ax":                 "ffff",
		"mov eax, 3\nbts dword ptr [0x600800], eax":                                        "08000000",
		"mov rax, -61\nlock bts qword ptr [0x600808], rax":                                 "0800000000000000",
		"mov ax, -13\nlock bts word ptr [0x600802], ax":                                    "0800",
		"mov ebx, 5\nxor ecx, ecx\nxor eax, eax\nxor edx, edx\nlock cmpxchg16b [0x600800]": "05000000000000000000000000000000",
		"mov ebx, 5\nmov ecx, 6\nxor eax, eax\nxor edx, edx\ncmpxchg8b [0x600800]":         "0500000006000000",
		"mov eax, 1\nlock cmpxchg [0x600800], eax":                                         "00000000",
		"lock inc byte ptr [0x600800]":                                                     "01",
		"mov eax, 0x11\nxchg [0x600800], ax":                                               "1100",
		"mov esp, 0x600808\npush -1":                                                       "ffffffffffffffff",
		"mov edi, 0x600800\nmov ecx, 3\nmov al, 7\nrep stosb":                              "070707",
		"mov edi, 0x600800\nmov esi, 0x604000\nmovsq":                                      "0102030405060708",
		"pcmpeqd xmm0, xmm0\nmovups [0x600800], xmm0":                                      "ffffffffffffffffffffffffffffffff",
		"fldpi\nfstp tbyte ptr [0x600800]":                                                 "35c26821a2da0fc90040",
		"stc\nsetc [0x600800]":                                                             "01",
	} {
		v := newViewBench(t, map[string]string{
			"touch": touchAll + "\nmov al, [0x604000]", "contend": "mov byte ptr [0x600000], 1", "store": code,
			"others": "movups xmm0, [0x604010]\nmovups [0x6007f0], xmm0\nmovups [0x600800], xmm0\nmovups [0x600810], xmm0",
		})
		v.mapPage(0x604000, arch.Read)
		around := bytes.Repeat([]byte{0xee}, 16)
		copy(v.ram.Bytes(v.space.Get(0x604000).Page()), append([]byte{1, 2, 3, 4, 5, 6, 7, 8, 15: 0}, around...))
		v.share()
		v.run(0, "contend")
		v.run(1, "contend")
		v.views.Drain(1)
		v.cpu.Load(v.ctx[0], v.space)
		v.setRegs(func(r *arch.Regs) { r.FSBase = 0x600800 })
		v.begin(0, "store")
		v.views.End() // and no drain, which a locked instruction asks for
		v.run(1, "others")
		v.waiting(1, 1)
		v.views.Drain(1)
		v.views.Drain(0)
		all := bytes.Repeat(around, 3)
		hex.Decode(all[16:], []byte(want))
		if got := v.read(0x6007f0, len(all)); !bytes.Equal(got, all) {
			t.Errorf("%s:\n%x, want\n%x", code, got, all)
		}
	}
}
