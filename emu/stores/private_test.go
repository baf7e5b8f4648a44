package stores_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// privateBench is a machine whose cores have private pages; thread 10+k runs on core k.
type privateBench struct {
	*bench
	private emu.PrivatePages
	ctx     []arch.Context
	at      map[string]arch.Addr // of each snippet
}

// newPrivateBench assembles snippets of code, each of which ends with SYSCALL.
func newPrivateBench(t testing.TB, e engine, snippets map[string]string) *privateBench {
	t.Helper()
	v := &privateBench{at: map[string]arch.Addr{}}
	var text strings.Builder
	for name, code := range snippets {
		v.at[name] = codeBase + arch.Addr(len(v.at)*0x100)
		fmt.Fprintf(&text, ".org %#x\n%s\nsyscall\n", int(v.at[name]-codeBase), code)
	}
	v.bench = e.newBench(t, text.String())
	var err error
	if v.private, err = v.CPU.UsePrivatePages(); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		v.ctx = append(v.ctx, v.CPU.NewContext())
	}
	return v
}

// beginRun runs a snippet on a core up to its SYSCALL or the first fault.
func (v *privateBench) beginRun(core int, name string) arch.Stop {
	v.Helper()
	v.CPU.Load(v.ctx[core], v.Space)
	v.ChangeRegs(func(r *arch.Regs) { r.RIP, r.RFLAGS = uint64(v.at[name]), 0x202 })
	v.private.Begin(arch.CoreID(core), arch.ThreadID(10+core))
	return v.CPU.Run(arch.Limit{})
}

// runSnippet runs a snippet on a core and returns its RAX. The core's buffer is not drained.
func (v *privateBench) runSnippet(core int, name string) uint64 {
	v.Helper()
	if stop := v.beginRun(core, name); stop.Reason != arch.StopSyscall {
		v.Fatalf("core %d in %s: stopped for reason %d (vector %d)", core, name, stop.Reason, stop.Vector)
	}
	if v.private.End() {
		v.private.Drain(arch.CoreID(core))
	}
	return v.Regs().GPR[arch.RAX]
}

// sharePages brings the pages of data into the state after accesses of several threads.
func (v *privateBench) sharePages() {
	for core := range 3 {
		v.runSnippet(core, "touch")
	}
}

func (v *privateBench) expectWaiting(want ...int) {
	v.Helper()
	for k, n := range want {
		if pages, _ := v.private.Waiting(arch.CoreID(k)); pages != n {
			v.Errorf("core %d holds %d pages, want %d", k, pages, n)
		}
	}
}

func (v *privateBench) expectValue(what string, got, want uint64) {
	v.Helper()
	if got != want {
		v.Errorf("%s: %#x, want %#x", what, got, want)
	}
}

const touchAll = "mov al, [0x600000]\nmov al, [0x601000]\nmov al, [0x602000]"

func TestStoresWaitByPages(t *testing.T) { onEngines(t, testStoresWaitByPages) }

func testStoresWaitByPages(t *testing.T, e engine) {
	v := newPrivateBench(t, e, map[string]string{
		"touch": touchAll, "store": "mov dword ptr [0x600010], 7", "load": "mov eax, [0x600010]",
		"fence": "mfence", "lock": "lock inc dword ptr [0x601000]", "far": "mov byte ptr [0x602000], 1",
	})
	v.sharePages()
	v.expectWaiting(0, 0, 0)
	v.runSnippet(0, "store")
	v.expectWaiting(1, 0, 0)
	v.expectValue("its own store", v.runSnippet(0, "load"), 7)
	v.expectValue("another's", v.runSnippet(1, "load"), 0)
	v.expectValue("the kernel", uint64(v.readBytes(dataBase+0x10, 1)[0]), 0)
	v.private.Drain(0)
	v.expectValue("another's, drained", v.runSnippet(1, "load"), 7)
	for _, drains := range []string{"fence", "lock"} {
		v.runSnippet(2, "far")
		v.expectWaiting(0, 0, 1)
		v.runSnippet(2, drains)
		v.expectWaiting(0, 0, 0)
	}
}

// TestPagesOfOneThread: the first access of another thread drains the stores that precede the
// stores to such a page.
func TestPagesOfOneThread(t *testing.T) { onEngines(t, testPagesOfOneThread) }

func testPagesOfOneThread(t *testing.T, e engine) {
	v := newPrivateBench(t, e, map[string]string{
		"touch": "mov al, [0x600000]", "store": "mov dword ptr [0x600000], 7\nmov dword ptr [0x601000], 8",
		"own": "mov eax, [0x601000]", "load": "mov eax, [0x600000]",
	})
	v.sharePages() // the first page only
	v.runSnippet(0, "store")
	v.expectWaiting(1)
	v.expectValue("older store", v.runSnippet(1, "load"), 0)
	v.expectValue("store to the thread's own page", v.runSnippet(1, "own"), 8)
	v.expectWaiting(0)
	v.expectValue("older store then", v.runSnippet(1, "load"), 7)
	v.expectValue("next reader", v.runSnippet(2, "own"), 8)
}

// TestSilentStores: a store of the value that memory has is a store. Comparing pages would lose the
// second store of core 0, and memory would end with 1 although core 0 loads 0.
func TestSilentStores(t *testing.T) { onEngines(t, testSilentStores) }

func testSilentStores(t *testing.T, e engine) {
	for name, y := range map[string]int{"one page": 0x600100, "two pages": 0x601000} {
		v := newPrivateBench(t, e, map[string]string{
			"touch": touchAll, "contend": "mov byte ptr [0x600200], 1\nmov byte ptr [0x601200], 1",
			"first":  fmt.Sprintf("mov dword ptr [%d], 1\nmov dword ptr [0x600000], 0", y),
			"second": "mov dword ptr [0x600000], 1", "x": "mov eax, [0x600000]", "y": fmt.Sprintf("mov eax, [%d]", y),
		})
		v.sharePages()
		v.runSnippet(0, "contend")
		v.runSnippet(1, "contend") // drains core 0: pages are contended after this
		v.private.Drain(1)
		v.runSnippet(0, "first")
		v.runSnippet(1, "second")
		if name == "one page" {
			v.expectWaiting(1, 1)
		}
		v.private.Drain(1)
		v.expectValue(name+": core 0 loads its own store", v.runSnippet(0, "x"), 0)
		v.expectValue(name+": core 1 loads what was committed", v.runSnippet(1, "x"), 1)
		v.expectValue(name+": core 1 does not see the older store", v.runSnippet(1, "y"), 0)
		v.private.Drain(0)
		v.expectValue(name+": the last to be committed stays", v.runSnippet(1, "x"), 0)
		v.expectValue(name+": the older store", v.runSnippet(1, "y"), 1)
	}
}

// TestNeighboursOfOnePage: cores that store to one page do not drain each other after the first
// time, see the other's stores when it drains, and keep their own.
func TestNeighboursOfOnePage(t *testing.T) { onEngines(t, testNeighboursOfOnePage) }

func testNeighboursOfOnePage(t *testing.T, e engine) {
	v := newPrivateBench(t, e, map[string]string{
		"touch": touchAll, "a": "mov word ptr [0x600ffe], 0x1111\nmov rax, [0x600ffc]",
		"b": "mov dword ptr [0x600fff], 0x22222222\nmov rax, [0x600ffc]", "load": "mov rax, [0x600ffc]",
		"many": "mov ecx, 20\n1: mov [0x600000 + rcx], cl\nloop 1b",
	})
	v.sharePages()
	v.runSnippet(0, "a")
	v.runSnippet(1, "a")
	v.expectWaiting(0, 1)
	v.private.Drain(1)
	v.expectValue("core 0", v.runSnippet(0, "a"), 0x11110000)
	v.expectValue("core 1, across pages", v.runSnippet(1, "b"), 0x22222222110000|0x22<<24)
	v.expectWaiting(1, 2)
	v.private.Drain(1)
	v.expectValue("core 0 of both", v.runSnippet(0, "load"), 0x22222211110000)
	v.expectValue("core 2", v.runSnippet(2, "load"), 0x22222222110000)
	v.private.Drain(0)
	v.expectValue("at the end", v.runSnippet(2, "load"), 0x22222211110000)
	v.runSnippet(0, "a")
	v.runSnippet(1, "many") // more stores than are traced
	v.expectWaiting(0, 1)
}

// TestFaultingStoresByPages: a store whose second page is missing has no effect.
func TestFaultingStoresByPages(t *testing.T) { onEngines(t, testFaultingStoresByPages) }

func testFaultingStoresByPages(t *testing.T, e engine) {
	v := newPrivateBench(t, e, map[string]string{
		"touch": "mov al, [0x603000]", "store": "mov rax, -1\nmov [0x603ffd], rax", "load": "mov eax, [0x603ffc]",
	})
	v.sharePages()
	for range 2 { // the second time the page is contended
		if stop := v.beginRun(0, "store"); stop.Reason != arch.StopFault || stop.Page != 0x604000 {
			t.Fatalf("reason %d at %#x", stop.Reason, uint64(stop.Page))
		}
		v.private.End()
		v.private.Drain(0)
		v.expectValue("nothing was stored", v.runSnippet(1, "load"), 0)
		v.beginRun(1, "store")
		v.private.End()
	}
	stop := v.beginRun(0, "store")
	v.MapPage(0x604000, arch.Read|arch.Write)
	if stop = v.CPU.Resume(); stop.Reason != arch.StopSyscall {
		t.Fatalf("reason %d", stop.Reason)
	}
	v.private.End()
	v.expectValue("others", v.runSnippet(2, "load"), 0)
	v.private.Drain(0)
	v.expectValue("drained", v.runSnippet(2, "load"), 0xffffff00)
}

// TestKernelStoresByPages: a store of the kernel to a page with private copies is not lost.
func TestKernelStoresByPages(t *testing.T) { onEngines(t, testKernelStoresByPages) }

func testKernelStoresByPages(t *testing.T, e engine) {
	v := newPrivateBench(t, e, map[string]string{"touch": touchAll, "store": "mov byte ptr [0x600001], 2", "load": "mov eax, [0x600000]"})
	v.sharePages()
	v.runSnippet(0, "store")
	v.expectValue("what the kernel reads", uint64(v.readBytes(dataBase+1, 1)[0]), 0)
	v.expectWaiting(1)
	v.Space.WriteAt([]byte{3}, dataBase+2)
	v.expectWaiting(0)
	for core := range 3 {
		v.expectValue("both stores", v.runSnippet(core, "load"), 0x30200)
	}
}

// TestSharedPagesAreStrong: pages of shared mappings are written in place, and the core's buffer is
// drained.
func TestSharedPagesAreStrong(t *testing.T) { onEngines(t, testSharedPagesAreStrong) }

func testSharedPagesAreStrong(t *testing.T, e engine) {
	v := newPrivateBench(t, e, map[string]string{
		"touch": touchAll, "store": "mov byte ptr [0x600000], 1\nmov byte ptr [0x603000], 2", "load": "mov al, [0x603000]\nmov ah, [0x600000]",
	})
	page := v.Space.Get(0x603000).Page()
	v.RAM.Ref(page)
	v.Space.Set(0x603000, mem.MakePTE(page, arch.Read|arch.Write, true))
	v.sharePages()
	for range 2 {
		v.runSnippet(0, "store")
		v.expectWaiting(0)
		v.expectValue("others", v.runSnippet(1, "load")&0xffff, 0x0102)
	}
}

// TestSavedPages: the stores that wait are part of a snapshot.
func TestSavedPages(t *testing.T) { onEngines(t, testSavedPages) }

func testSavedPages(t *testing.T, e engine) {
	v := newPrivateBench(t, e, map[string]string{
		"touch": touchAll, "store": "mov byte ptr [0x600000], 1", "more": "mov byte ptr [0x600001], 1\nmov byte ptr [0x601000], 1",
		"load": "mov eax, [0x600000]",
	})
	v.sharePages()
	v.runSnippet(0, "store")
	used := v.RAM.Used()
	before, saved := v.Space.Clone(), v.private.Save()
	v.runSnippet(0, "more")
	v.runSnippet(1, "store")
	v.expectWaiting(0, 1)
	for range 2 {
		live := before.Clone()
		saved.Load(func(arch.ThreadID) *mem.Space { return live })
		v.Space.Release()
		v.Space = live
		v.expectWaiting(1, 0)
		v.expectValue("own", v.runSnippet(0, "load"), 1)
		v.expectValue("others", v.runSnippet(1, "load"), 0)
		v.runSnippet(0, "more")
		v.expectWaiting(2, 0)
		v.private.Drain(0)
		v.expectValue("drained", v.runSnippet(1, "load"), 0x101)
	}
	saved.Release()
	before.Release()
	if got := v.RAM.Used(); got != used {
		t.Errorf("%d pages are used, %d before", got, used)
	}
}

// TestSpacesTakeWhatWaits: a space that no longer exists is not written.
func TestSpacesTakeWhatWaits(t *testing.T) { onEngines(t, testSpacesTakeWhatWaits) }

func testSpacesTakeWhatWaits(t *testing.T, e engine) {
	v := newPrivateBench(t, e, map[string]string{"touch": touchAll, "store": "mov byte ptr [0x600000], 1"})
	v.sharePages()
	v.runSnippet(0, "store")
	v.Space.Unmap(dataBase, dataBase+arch.PageSize)
	v.MapPage(dataBase, arch.Read|arch.Write)
	v.private.Drain(0)
	v.expectValue("a new page at the address", uint64(v.readBytes(dataBase, 1)[0]), 0)
	v.sharePages()
	v.runSnippet(0, "store")
	v.expectWaiting(1)
	v.Space.Release()
	v.expectWaiting(0)
}

// TestForksKeepWhatWaits: when one of two processes gets its own copy of a page, stores that wait in the other reach
// that one's page alone.
func TestForksKeepWhatWaits(t *testing.T) { onEngines(t, testForksKeepWhatWaits) }

func testForksKeepWhatWaits(t *testing.T, e engine) {
	for _, views := range []bool{false, true} {
		v := newPrivateBench(t, e, map[string]string{"touch": touchAll, "store": "mov byte ptr [0x600000], 1", "load": "mov eax, [0x600000]"})
		v.sharePages()
		if _, fault := v.Space.WriteAt([]byte{0, 9}, dataBase); fault != arch.NoFault { // the page is not the page of zeros
			t.Fatal(fault)
		}
		if views {
			v.private.UseViews()
			v.private.View(1, 11, v.Space)
		}
		v.runSnippet(1, "store")
		child := v.Space.Clone()
		defer child.Release()
		if _, fault := child.WriteAt([]byte{2}, dataBase+1); fault != arch.NoFault {
			t.Fatal(fault)
		}
		v.expectWaiting(0, 1)
		v.expectValue("its own store", v.runSnippet(1, "load"), 0x901)
		v.private.Drain(1)
		v.expectValue("the parent", v.runSnippet(2, "load"), 0x901)
		var b [2]byte
		if _, fault := child.ReadAt(b[:], dataBase); fault != arch.NoFault || b != [2]byte{0, 2} {
			t.Errorf("the child: % x, %v", b, fault)
		}
	}
}

func TestViewsAreAlone(t *testing.T) { onEngines(t, testViewsAreAlone) }

func testViewsAreAlone(t *testing.T, e engine) {
	b, _ := newBuffered(t, e, 0, "syscall")
	if _, err := b.CPU.UsePrivatePages(); err == nil {
		t.Error("two engines for stores at once")
	}
}

// TestDrainsIgnoreRights: a debugger's watchpoint removes rights from a page, which the stores that
// wait for it reach nevertheless.
func TestDrainsIgnoreRights(t *testing.T) { onEngines(t, testDrainsIgnoreRights) }

func testDrainsIgnoreRights(t *testing.T, e engine) {
	v := newPrivateBench(t, e, map[string]string{"touch": touchAll, "store": "mov byte ptr [0x600000], 1", "load": "mov eax, [0x600000]"})
	v.sharePages()
	v.runSnippet(0, "store")
	v.Space.Protect(dataBase, dataBase+arch.PageSize, arch.Read)
	v.private.Drain(0)
	v.expectValue("drained", v.runSnippet(1, "load"), 1)
}

// TestStoresAreFound: in a contended page a core's copy has exactly the bytes that its instruction
// stores; other bytes that another core has committed since stay when the core drains.
func TestStoresAreFound(t *testing.T) { onEngines(t, testStoresAreFound) }

func testStoresAreFound(t *testing.T, e engine) {
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
		v := newPrivateBench(t, e, map[string]string{
			"touch": touchAll + "\nmov al, [0x604000]", "contend": "mov byte ptr [0x600000], 1", "store": code,
			"others": "movups xmm0, [0x604010]\nmovups [0x6007f0], xmm0\nmovups [0x600800], xmm0\nmovups [0x600810], xmm0",
		})
		v.MapPage(0x604000, arch.Read)
		around := bytes.Repeat([]byte{0xee}, 16)
		copy(v.RAM.Bytes(v.Space.Get(0x604000).Page()), append([]byte{1, 2, 3, 4, 5, 6, 7, 8, 15: 0}, around...))
		v.sharePages()
		v.runSnippet(0, "contend")
		v.runSnippet(1, "contend")
		v.private.Drain(1)
		v.CPU.Load(v.ctx[0], v.Space)
		v.ChangeRegs(func(r *arch.Regs) { r.FSBase = 0x600800 })
		v.beginRun(0, "store")
		v.private.End() // without the drain that a locked instruction requires
		v.runSnippet(1, "others")
		v.expectWaiting(1, 1)
		v.private.Drain(1)
		v.private.Drain(0)
		all := bytes.Repeat(around, 3)
		hex.Decode(all[16:], []byte(want))
		if got := v.readBytes(0x6007f0, len(all)); !bytes.Equal(got, all) {
			t.Errorf("%s:\n%x, want\n%x", code, got, all)
		}
	}
}
