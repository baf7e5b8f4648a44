package mm

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// tryMap is mustMap for mappings that may fail.
func tryMap(as *AddressSpace, addr arch.Addr, length uint64, prot, flags int) unix.Errno {
	_, errno := as.Mmap(MapRequest{Addr: addr, Length: length, Prot: prot, Flags: flags})
	return errno
}

func TestHugeReservations(t *testing.T) {
	as := newTest(t, 16<<20)
	for range 3 {
		mustMap(t, as, 0, 1<<40, unix.PROT_NONE, private)
		mustMap(t, as, 0, 1<<40, rw, private|unix.MAP_NORESERVE)
	}
	if errno := tryMap(as, 0, 1<<40, rw, private); errno != unix.ENOMEM {
		t.Errorf("1 TiB of writable memory: %v", errno)
	}
	if !as.TakeRefused() || as.TakeRefused() {
		t.Error("the refusal is not noted once")
	}
	mustMap(t, as, 0, CommitLimit, rw, private)
	mustMap(t, as, 0, CommitLimit, rw, shared)
	if errno := tryMap(as, 0, 1<<40, rw, shared); errno != unix.ENOMEM {
		t.Errorf("1 TiB of shared memory: %v", errno)
	}
	at := mustMap(t, as, 0, 1<<40, unix.PROT_READ, private)
	if errno := as.Mprotect(at, 1<<40, rw); errno != unix.ENOMEM {
		t.Errorf("1 TiB made writable: %v", errno)
	}
	if errno := tryMap(as, 0, 1<<47, unix.PROT_NONE, private); errno != unix.ENOMEM {
		t.Errorf("more than there are addresses: %v", errno)
	}
	if n := as.Resident(); n != 0 {
		t.Errorf("%d pages are resident", n)
	}
}

// TestMemoryRunsOut: using up guest memory ends in OutOfMemory, not in more
// host memory, whatever is touched.
func TestMemoryRunsOut(t *testing.T) {
	for name, touch := range map[string]func(as *AddressSpace, at arch.Addr) FaultResult{
		"writes": func(as *AddressSpace, at arch.Addr) FaultResult { return as.Fault(at, arch.AccessWrite) },
		// Pages of zeros cost page tables.
		"reads far apart": func(as *AddressSpace, at arch.Addr) FaultResult {
			return as.Fault(arch.Addr(1<<40)+(at-region)*1024, arch.AccessRead)
		},
	} {
		t.Run(name, func(t *testing.T) {
			as := newTest(t, 4<<20)
			mustMap(t, as, region, 1<<30, rw, private|unix.MAP_NORESERVE|unix.MAP_FIXED)
			mustMap(t, as, 1<<40, 1<<42, rw, private|unix.MAP_NORESERVE|unix.MAP_FIXED)
			for i := arch.Addr(0); ; i++ {
				switch r := touch(as, region+i*arch.PageSize); {
				case r == OutOfMemory:
					if as.ram.Used()+as.ram.Tables() > 1<<10 {
						t.Errorf("%d pages and %d tables", as.ram.Used(), as.ram.Tables())
					}
					if _, errno := as.Fork(); errno != unix.ENOMEM {
						t.Errorf("fork: %v", errno)
					}
					if errno := as.WriteU64(region+1<<29, 1); errno != unix.EFAULT {
						t.Errorf("a write by the kernel: %v", errno)
					}
					return
				case r != Resolved || i > 1<<11:
					t.Fatalf("page %d: %v", i, r)
				}
			}
		})
	}
}

func TestResourceLimits(t *testing.T) {
	as := newTest(t, 64<<20)
	as.Limits.AddressSpace = 1 << 20
	if errno := tryMap(as, 0, 2<<20, unix.PROT_NONE, private); errno != unix.ENOMEM {
		t.Errorf("beyond RLIMIT_AS: %v", errno)
	}
	at := mustMap(t, as, 0, 1<<20, unix.PROT_NONE, private)
	// Replaced mappings make room.
	mustMap(t, as, at, 1<<20, unix.PROT_READ, private|unix.MAP_FIXED)
	if _, errno := as.Mremap(at, 1<<20, 2<<20, unix.MREMAP_MAYMOVE, 0); errno != unix.ENOMEM {
		t.Errorf("mremap beyond RLIMIT_AS: %v", errno)
	}
	as.Munmap(at, 1<<20)

	as.Limits = DefaultLimits()
	as.Limits.Data = 1 << 20
	as.SetBrk(region)
	if got := as.Brk(region+2<<20, unix.PROT_READ|unix.PROT_WRITE); got != region {
		t.Errorf("brk beyond RLIMIT_DATA moved to %#x", got)
	}
	if got := as.Brk(region+512<<10, unix.PROT_READ|unix.PROT_WRITE); got != region+512<<10 {
		t.Errorf("brk within RLIMIT_DATA stayed at %#x", got)
	}
	if errno := tryMap(as, 0, 600<<10, rw, private); errno != unix.ENOMEM {
		t.Errorf("data beyond RLIMIT_DATA: %v", errno)
	}
	mustMap(t, as, 0, 600<<10, unix.PROT_READ, private)
	as.Limits.MemLock = 8 * arch.PageSize
	if errno := tryMap(as, 0, 9*arch.PageSize, unix.PROT_READ, private|unix.MAP_LOCKED); errno != unix.EAGAIN {
		t.Errorf("MAP_LOCKED beyond RLIMIT_MEMLOCK: %v", errno)
	}
	if errno := as.Mlock(region, 9*arch.PageSize, 0); errno != unix.ENOMEM {
		t.Errorf("mlock beyond RLIMIT_MEMLOCK: %v", errno)
	}
	as.Limits.MemLock = 0
	if errno := as.Mlock(region, arch.PageSize, 0); errno != unix.EPERM {
		t.Errorf("mlock without the right: %v", errno)
	}
	if errno := as.Mlockall(unix.MCL_FUTURE); errno != unix.EPERM {
		t.Errorf("mlockall without the right: %v", errno)
	}
}

func TestMlockall(t *testing.T) {
	as := newTest(t, 1<<20)
	as.Limits.MayLock = true
	before := mustMap(t, as, 0, 2*arch.PageSize, rw, private)
	for _, flags := range []int{0, unix.MCL_ONFAULT, 64} {
		if errno := as.Mlockall(flags); errno != unix.EINVAL {
			t.Errorf("mlockall(%d): %v", flags, errno)
		}
	}
	if errno := as.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE); errno != 0 {
		t.Fatal(errno)
	}
	mustMap(t, as, 0, arch.PageSize, rw, private)
	if u := as.Usage(); u.Locked != 3 || u.Resident != 3 {
		t.Errorf("%+v", u)
	}
	if errno := as.Madvise(before, arch.PageSize, unix.MADV_DONTNEED); errno != unix.EINVAL {
		t.Errorf("MADV_DONTNEED of locked memory: %v", errno)
	}
	as.Munlockall()
	mustMap(t, as, 0, arch.PageSize, rw, private)
	if u := as.Usage(); u.Locked != 0 || u.Resident != 3 {
		t.Errorf("%+v", u)
	}
}

// TestMappingsAreLimited: vm.max_map_count.
func TestMappingsAreLimited(t *testing.T) {
	as := newTest(t, 16<<20)
	at := mustMap(t, as, region, 2*(MaxMappings+10)*arch.PageSize, unix.PROT_NONE, private|unix.MAP_FIXED)
	made := 1
	for ; ; made += 2 {
		errno := as.Mprotect(at+arch.Addr(made)*arch.PageSize, arch.PageSize, unix.PROT_READ)
		if errno == unix.ENOMEM {
			break
		}
		if errno != 0 || as.Count() > MaxMappings {
			t.Fatalf("%d mappings, %v", as.Count(), errno)
		}
	}
	if as.Count() < MaxMappings-2 {
		t.Errorf("refused at %d mappings", as.Count())
	}
	for as.Count() < MaxMappings {
		mustMap(t, as, 0, arch.PageSize, unix.PROT_READ, shared) // these never merge
	}
	if errno := as.Munmap(region+2*MaxMappings*arch.PageSize, arch.PageSize); errno != unix.ENOMEM {
		t.Errorf("munmap that splits: %v", errno)
	}
	if errno := as.Madvise(region+2*MaxMappings*arch.PageSize, arch.PageSize, unix.MADV_DONTFORK); errno != unix.ENOMEM {
		t.Errorf("madvise that splits: %v", errno)
	}
	mustMap(t, as, 0, arch.PageSize, unix.PROT_READ, shared)
	if errno := tryMap(as, 0, arch.PageSize, unix.PROT_READ, shared); errno != unix.ENOMEM {
		t.Errorf("one mapping too many: %v", errno)
	}
}

func TestStackGrows(t *testing.T) {
	as := newTest(t, 64<<20)
	top := TaskSize
	mustMap(t, as, top-2*arch.PageSize, 2*arch.PageSize, rw, private|unix.MAP_FIXED|unix.MAP_GROWSDOWN)
	if r := as.Fault(top-1<<20, arch.AccessWrite); r != Resolved {
		t.Errorf("1 MiB of stack: %v", r)
	}
	if v, _ := as.Find(top - 1); v.Start != top-1<<20 {
		t.Errorf("the stack begins at %#x", v.Start)
	}
	if r := as.Fault(top-arch.Addr(as.Limits.Stack)-1, arch.AccessWrite); r != MapErr {
		t.Errorf("beyond RLIMIT_STACK: %v", r)
	}
	// A mapping keeps 1 MiB of distance.
	mustMap(t, as, top-4<<20, arch.PageSize, rw, private|unix.MAP_FIXED)
	guard := top - 4<<20 + arch.PageSize + 256*arch.PageSize
	if r := as.Fault(guard-1, arch.AccessRead); r != MapErr {
		t.Errorf("in the guard gap: %v", r)
	}
	if r := as.Fault(guard, arch.AccessRead); r != Resolved {
		t.Errorf("above the guard gap: %v", r)
	}
	// Inaccessible memory may be near.
	if errno := as.Mprotect(top-4<<20, arch.PageSize, unix.PROT_NONE); errno != 0 {
		t.Fatal(errno)
	}
	if r := as.Fault(guard-arch.PageSize, arch.AccessRead); r != Resolved {
		t.Errorf("near an inaccessible mapping: %v", r)
	}
	if u := as.Usage(); u.Data != 0 || u.Stack != uint64(top-guard)/arch.PageSize+1 {
		t.Errorf("%+v", u)
	}
}

func TestFaultResults(t *testing.T) {
	as := newTest(t, 1<<20)
	o := NewObject(as.ram, text("short"), 5)
	defer o.Unref()
	file, errno := as.Mmap(MapRequest{Length: 3 * arch.PageSize, Prot: unix.PROT_READ, Flags: unix.MAP_PRIVATE, Object: o, Readable: true})
	if errno != 0 {
		t.Fatal(errno)
	}
	bad := NewObject(as.ram, broken{}, arch.PageSize)
	defer bad.Unref()
	unreadable, _ := as.Mmap(MapRequest{Length: arch.PageSize, Prot: unix.PROT_READ, Flags: unix.MAP_SHARED, Object: bad, Readable: true})
	none := mustMap(t, as, 0, arch.PageSize, unix.PROT_NONE, private)
	writeOnly := mustMap(t, as, 0, arch.PageSize, unix.PROT_WRITE, private)
	execOnly := mustMap(t, as, 0, arch.PageSize, unix.PROT_EXEC, private)
	for _, c := range []struct {
		what   string
		va     arch.Addr
		access arch.Access
		want   FaultResult
		sig    unix.Signal
		code   int32
	}{
		{"file", file, arch.AccessRead, Resolved, 0, 0},
		{"write to a read-only mapping", file, arch.AccessWrite, AccErr, unix.SIGSEGV, 2},
		{"execution of data", file, arch.AccessFetch, AccErr, unix.SIGSEGV, 2},
		{"past the end of the file", file + arch.PageSize, arch.AccessRead, BusErr, unix.SIGBUS, 2},
		{"a page that cannot be read", unreadable, arch.AccessRead, BusErr, unix.SIGBUS, 2},
		{"null", 0, arch.AccessRead, MapErr, unix.SIGSEGV, 1},
		{"kernel address", 1 << 63, arch.AccessRead, MapErr, unix.SIGSEGV, 1},
		{"end of addresses", TaskSize, arch.AccessRead, MapErr, unix.SIGSEGV, 1},
		{"PROT_NONE", none, arch.AccessRead, AccErr, unix.SIGSEGV, 2},
		// Without protection keys x86 cannot withhold the right to read.
		{"PROT_WRITE", writeOnly, arch.AccessRead, Resolved, 0, 0},
		{"PROT_EXEC", execOnly, arch.AccessRead, Resolved, 0, 0},
		{"PROT_EXEC", execOnly, arch.AccessFetch, Resolved, 0, 0},
	} {
		r := as.Fault(c.va, c.access)
		if sig, code := r.Signal(); r != c.want || sig != c.sig || code != c.code {
			t.Errorf("%s: %v, signal %v, code %d", c.what, r, sig, code)
		}
		if _, why := as.space.Walk(c.va, c.access); (why == arch.NoFault) != (c.want == Resolved) {
			t.Errorf("%s: then %v", c.what, why)
		}
	}
	if sig, _ := OutOfMemory.Signal(); sig != unix.SIGKILL {
		t.Errorf("out of memory raises %v", sig)
	}
}

// TestTruncationUnmaps: pages past the new end fault, copies in private
// mappings included, and come back as zeros if the file grows again.
func TestTruncationUnmaps(t *testing.T) {
	as := newTest(t, 1<<20)
	o := NewObject(as.ram, text(make([]byte, 3*arch.PageSize)), 3*arch.PageSize)
	defer o.Unref()
	request := MapRequest{Length: 3 * arch.PageSize, Prot: rw, Object: o, Readable: true, Writable: true}
	request.Flags = unix.MAP_SHARED
	s, _ := as.Mmap(request)
	request.Flags = unix.MAP_PRIVATE
	p, _ := as.Mmap(request)
	for i := arch.Addr(0); i < 3; i++ {
		as.WriteU8(s+i*arch.PageSize+4000, 1)
		as.WriteU8(p+i*arch.PageSize+4000, 2)
	}
	if errno := o.Truncate(arch.PageSize + 10); errno != 0 {
		t.Fatal(errno)
	}
	if errno := o.Truncate(3 * arch.PageSize); errno != 0 {
		t.Fatal(errno)
	}
	for _, c := range []struct {
		va   arch.Addr
		want uint8
	}{
		{s + 4000, 1},
		{p + 4000, 2},
		{s + arch.PageSize + 4000, 0},
		{p + arch.PageSize + 4000, 2},
		{s + 2*arch.PageSize + 4000, 0},
		{p + 2*arch.PageSize + 4000, 0},
	} {
		if got, errno := as.ReadU8(c.va); got != c.want || errno != 0 {
			t.Errorf("at %#x: %d, %v, want %d", c.va, got, errno, c.want)
		}
	}
}
