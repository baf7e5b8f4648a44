package procfs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/ipc/msg"
	"github.com/heddle-dmt/heddle/guest/ipc/sem"
	"github.com/heddle-dmt/heddle/guest/ipc/shm"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// fakeKernel has the processes 1 and 7; 7 has the threads 7 and 9.
type fakeKernel struct {
	internet  map[[2]int][]Socket // by family and type
	scope     int
	processes []*fakeProcess
}

func (k *fakeKernel) Machine() Machine {
	return Machine{
		Cores: 4, KHz: 2_000_500, MemoryBytes: 1 << 30, FreeBytes: 1 << 29, Hostname: "heddle", Domainname: "(none)",
		Release: "6.1.0-heddle", Version: "#1 SMP", BootNS: 1_700_000_000e9, UptimeNS: 12_345_678_901,
		Times:   []CoreTimes{{1e9, 2e9, 3e9}, {0, 0, 6e9}, {0, 0, 6e9}, {0, 0, 6e9}},
		Running: 1, Threads: 3, LastID: 9, MaxThreads: 1000,
	}
}

func (k *fakeKernel) CPUID(leaf, _ uint32) [4]uint32 {
	switch leaf {
	case 0:
		return [4]uint32{7, 0x68747541, 0x444d4163, 0x69746e65}
	case 1:
		return [4]uint32{0x00100f42, 0, 1 << 23, 0x078bfbff}
	case 0x80000005:
		return [4]uint32{0, 0, 64<<24 | 2<<16 | 1<<8 | 64, 64<<24 | 2<<16 | 1<<8 | 64}
	case 0x80000006:
		return [4]uint32{0, 0, 512<<16 | 8<<12 | 1<<8 | 64, 12<<18 | 11<<12 | 1<<8 | 64}
	case 0x80000008:
		return [4]uint32{48<<8 | 48, 0, 3, 0}
	}
	return [4]uint32{}
}

func (k *fakeKernel) SystemV() (*shm.System, *sem.System, *msg.System) {
	caller := &ipc.Caller{PID: 7, EUID: 1000, EGID: 100, Now: 1_700_000_000}
	sets, queues := sem.New(nil), msg.New(nil)
	_, _ = sets.Get(caller, 5, 3, ipc.Create|0o640)
	_, _ = queues.Get(caller, -2, ipc.Create|0o600)
	return shm.New(nil, nil, nil), sets, queues
}

func (k *fakeKernel) Sockets(family, kind int) []Socket {
	if family != unix.AF_UNIX {
		return k.internet[[2]int{family, kind}]
	}
	return []Socket{
		{Type: 1, State: 1, Inode: 17, Listens: true, Local: Endpoint{Name: "/run/socket"}},
		{Type: 2, State: 3, Inode: 19, Local: Endpoint{Name: "\x00name"}},
	}
}

func (k *fakeKernel) PtraceScope() int { return k.scope }

func (k *fakeKernel) SetPtraceScope(scope int) { k.scope = scope }

func (k *fakeKernel) Processes() []int32 { return []int32{1, 7} }

func (k *fakeKernel) Process(id int32) Process {
	for _, p := range k.processes {
		if slices.Contains(p.threads, id) {
			return p
		}
	}
	return nil
}

type fakeProcess struct {
	threads       []int32
	uid           uint32
	exe, cwd, top *vfs.Dentry
	files         map[int32]*vfs.File
	names         map[int32]string
	score         int
	space         *mm.AddressSpace
}

func (p *fakeProcess) ID() int32        { return p.threads[0] }
func (p *fakeProcess) Threads() []int32 { return p.threads }

func (p *fakeProcess) Status(thread int32) (Status, bool) {
	s := Status{
		Name: p.names[max(thread, p.ID())], State: 'R', Parent: 1, UID: [4]uint32{p.uid, p.uid, p.uid, p.uid}, Umask: 0o22,
		Affinity: 0b1011, StartNS: 5e9, UserNS: 1e9, ExitSignal: 17, DescriptorTable: 64, Priority: 120,
		Dumpable: true,
	}
	return s, thread == 0 || slices.Contains(p.threads, thread)
}

func (p *fakeProcess) Space() *mm.AddressSpace { return p.space }
func (p *fakeProcess) Exe() *vfs.Dentry        { return p.exe }
func (p *fakeProcess) Cwd() *vfs.Dentry        { return p.cwd }
func (p *fakeProcess) Root() *vfs.Dentry       { return p.top }

func (p *fakeProcess) Files() []int32 {
	var all []int32
	for fd := range p.files {
		all = append(all, fd)
	}
	slices.Sort(all)
	return all
}

func (p *fakeProcess) File(fd int32) (*vfs.File, bool) { return p.files[fd], fd == 4 }

func (p *fakeProcess) Limit(resource int) unix.Rlimit {
	var l unix.Rlimit
	if err := unix.Getrlimit(resource, &l); err != nil {
		panic(err)
	}
	return l
}

func (p *fakeProcess) Args() []string                    { return nil }
func (p *fakeProcess) MayExamine(c *vfs.Ctx) bool        { return c.Cred.FSUID == 0 || c.Cred.FSUID == p.uid }
func (p *fakeProcess) MayTrace(c *vfs.Ctx) bool          { return p.MayExamine(c) }
func (p *fakeProcess) SetName(thread int32, name string) { p.names[thread] = name }
func (p *fakeProcess) OOMScoreAdj() int                  { return p.score }
func (p *fakeProcess) SetOOMScoreAdj(score int)          { p.score = score }

type zeros struct{}

func (zeros) Read(p []byte) { clear(p) }

// setUp makes a file system with /proc and /sys, and the context of process 7.
func setUp(t *testing.T) (*vfs.FS, *fakeKernel, *vfs.Ctx) {
	t.Helper()
	ram, err := mem.NewRAM(16 << 20)
	if err != nil {
		t.Fatal(err)
	}
	host := t.TempDir()
	if err := os.WriteFile(host+"/prog", []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	fs, err := vfs.New(vfs.Config{RAM: ram, Mounts: []vfs.Mount{{Host: host, Guest: "/data"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close(); ram.Close() })
	fs.Entropy = zeros{}
	k := &fakeKernel{}
	Mount(fs, k)
	c := &vfs.Ctx{Cred: vfs.NewCred(1000, 1000), Root: fs.Root(), Cwd: fs.Root(), PID: 7, TID: 9}
	exe := find(t, fs, c, "/data/prog")
	in, errno := fs.OpenDentry(c, exe, unix.O_RDONLY)
	if errno != 0 {
		t.Fatal(errno)
	}
	for _, p := range []*fakeProcess{{threads: []int32{1}}, {threads: []int32{7, 9}, uid: 1000}} {
		p.exe, p.cwd, p.top = exe, find(t, fs, c, "/data"), fs.Root()
		p.files = map[int32]*vfs.File{0: in, 4: fs.NewFile(fs.NewPipe(c), "pipe:", unix.O_WRONLY, nil)}
		p.names = map[int32]string{1: "init", 7: "a b)", 9: "worker"}
		k.processes = append(k.processes, p)
	}
	return fs, k, c
}

func find(t *testing.T, fs *vfs.FS, c *vfs.Ctx, path string) *vfs.Dentry {
	t.Helper()
	d, errno := fs.Lookup(c, nil, path, true)
	if errno != 0 {
		t.Fatalf("%s: %v", path, errno)
	}
	return d
}

func cat(t *testing.T, fs *vfs.FS, c *vfs.Ctx, path string) string {
	t.Helper()
	f, errno := fs.Open(c, nil, path, unix.O_RDONLY, 0)
	if errno != 0 {
		t.Fatalf("open %s: %v", path, errno)
	}
	defer f.Unref()
	var all []byte
	buf := make([]byte, 100)
	for {
		n, errno := f.Read(c, buf)
		if errno != 0 {
			t.Fatalf("read %s: %v", path, errno)
		}
		if n == 0 {
			return string(all)
		}
		all = append(all, buf[:n]...)
	}
}

func TestText(t *testing.T) {
	fs, _, c := setUp(t)
	for _, test := range []struct{ path, want string }{
		{"/proc/self/comm", "a b)\n"},
		{"/proc/thread-self/comm", "worker\n"},
		{"/proc/9/comm", "worker\n"},
		{"/proc/1/task/1/comm", "init\n"},
		{"/proc/uptime", "12.34 21.00\n"},
		{"/proc/loadavg", "0.00 0.00 0.00 1/3 9\n"},
		{"/proc/sys/kernel/osrelease", "6.1.0-heddle\n"},
		{"/proc/sys/kernel/random/uuid", "00000000-0000-4000-8000-000000000000\n"},
		{"/proc/self/fdinfo/4", "pos:\t0\nflags:\t02000001\nmnt_id:\t20\nino:\t" + ino(t, fs, c, "/proc/self/fd/4") + "\n"},
		{"/proc/sysvipc/sem", "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n" +
			"         5          0   640          3  1000   100  1000   100          0 1700000000\n"},
		{"/proc/sysvipc/msg", "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime      ctime\n" +
			"        -2          0   600           0          0     0     0  1000   100  1000   100          0          0 1700000000\n"},
		{"/proc/sys/kernel/sem", "32000\t1024000000\t500\t32000\n"},
		{"/sys/devices/system/cpu/online", "0-3\n"},
		{"/sys/devices/system/cpu/cpu2/topology/core_id", "2\n"},
		{"/sys/devices/system/cpu/cpu2/topology/thread_siblings", "4\n"},
		{"/sys/devices/system/cpu/cpu0/topology/core_siblings_list", "0-3\n"},
		{"/sys/devices/system/cpu/cpu0/cache/index0/size", "64K\n"},
		{"/sys/devices/system/cpu/cpu0/cache/index2/number_of_sets", "512\n"},
		{"/sys/devices/system/cpu/cpu0/cache/index3/size", "6144K\n"},
		{"/sys/devices/system/node/node0/cpulist", "0-3\n"},
		{"/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"},
	} {
		if got := cat(t, fs, c, test.path); got != test.want {
			t.Errorf("%s: %q, want %q", test.path, got, test.want)
		}
	}
}

func ino(t *testing.T, fs *vfs.FS, c *vfs.Ctx, path string) string {
	return fmt.Sprint(find(t, fs, c, path).Inode().Ino())
}

// TestMemory gives process 7 an address space with arguments and environment.
// TestNumbersOfSockets: as Linux prints them for a listener of which a connection waits, two ends of a connection in IPv6, a
// connection that its process has closed, one in TIME_WAIT, and sockets of UDP (with the memory of their own bytes alone).
func TestNumbersOfSockets(t *testing.T) {
	fs, k, c := setUp(t)
	k.internet = map[[2]int][]Socket{
		{unix.AF_INET, unix.SOCK_STREAM}: {
			{State: 10, Received: 1, Inode: 20, Listens: true}, {State: 5, Received: 4097}, {State: 6, Remaining: 1},
		},
		{unix.AF_INET6, unix.SOCK_STREAM}: {{State: 1, Inode: 21}, {State: 1, Inode: 22}},
		{unix.AF_INET, unix.SOCK_DGRAM}:   {{State: 7, Inode: 23, Received: 10}},
		{unix.AF_INET6, unix.SOCK_DGRAM}:  {{State: 7, Inode: 24}, {State: 7, Inode: 25}},
	}
	for path, want := range map[string]string{
		"/proc/net/sockstat": "sockets: used 9\nTCP: inuse 2 orphan 1 tw 1 alloc 4 mem 2\nUDP: inuse 1 mem 1\nUDPLITE: inuse 0\n" +
			"RAW: inuse 0\nFRAG: inuse 0 memory 0\n",
		"/proc/net/sockstat6": "TCP6: inuse 2\nUDP6: inuse 2\nUDPLITE6: inuse 0\nRAW6: inuse 0\nFRAG6: inuse 0 memory 0\n",
	} {
		if got := cat(t, fs, c, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestMemory(t *testing.T) {
	fs, k, c := setUp(t)
	for path, want := range map[string]string{"/proc/7/cmdline": "", "/proc/7/maps": "", "/proc/7/statm": "0 0 0 0 0 0 0\n"} {
		if got := cat(t, fs, c, path); got != want {
			t.Errorf("without memory %s is %q, want %q", path, got, want)
		}
	}
	ram, err := mem.NewRAM(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ram.Close)
	space := mm.New(ram, mm.DefaultLimits())
	at, errno := space.Mmap(mm.MapRequest{
		Addr: 0x10000, Length: 2 * pageSize, Prot: unix.PROT_READ | unix.PROT_WRITE, Flags: unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED,
	})
	if errno != 0 || at != 0x10000 {
		t.Fatal(at, errno)
	}
	args, env := "prog\x00-x\x00", "HOME=/\x00"
	if errno := space.CopyOut(at, []byte(args+env)); errno != 0 {
		t.Fatal(errno)
	}
	l := &space.Layout
	l.ArgStart, l.ArgEnd = at, at+8
	l.EnvStart, l.EnvEnd = at+8, at+15
	l.StartCode, l.EndCode = 0x400000, 0x401234
	l.Auxv = []byte{1, 2, 3}
	k.processes[1].space = space
	for path, want := range map[string]string{
		"/proc/self/cmdline": args, "/proc/self/environ": env, "/proc/self/task/9/cmdline": args, "/proc/self/auxv": "\x01\x02\x03",
		"/proc/self/maps": space.Maps(), "/proc/self/smaps": space.Smaps(), "/proc/self/statm": "2 1 0 2 0 2 0\n",
	} {
		if got := cat(t, fs, c, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	status := cat(t, fs, c, "/proc/self/status")
	for _, want := range []string{"VmSize:\t       8 kB\n", "VmRSS:\t       4 kB\n", "VmExe:\t       8 kB\n"} {
		if !strings.Contains(status, want) {
			t.Errorf("status lacks %q:\n%s", want, status)
		}
	}
	shape(t, fs, c, "/proc/self/status")
}

func TestLinks(t *testing.T) {
	fs, _, c := setUp(t)
	pipe := ino(t, fs, c, "/proc/self/fd/4")
	for _, test := range []struct{ path, text, leads string }{
		{"/proc/self", "7", "/proc/7"},
		{"/proc/thread-self", "7/task/9", "/proc/7/task/9"},
		{"/proc/mounts", "self/mounts", "/proc/7/mounts"},
		{"/proc/self/exe", "/data/prog", "/data/prog"},
		{"/proc/self/cwd", "/data", "/data"},
		{"/proc/self/root", "/", "/"},
		{"/proc/self/fd/0", "/data/prog", "/data/prog"},
		{"/proc/self/fd/4", "pipe:[" + pipe + "]", "pipe:[" + pipe + "]"},
		{"/proc/self/task/9/fd/0", "/data/prog", "/data/prog"},
		{"/proc/self/root/../proc/self/cwd/..", "", "/"},
		{"/dev/stdin", "/proc/self/fd/0", "/data/prog"},
		{"/dev/fd/0", "/data/prog", "/data/prog"},
	} {
		if test.text != "" {
			if got, errno := fs.Readlink(c, nil, test.path); errno != 0 || got != test.text {
				t.Errorf("readlink %s: %q %v, want %q", test.path, got, errno, test.text)
			}
		}
		if got := find(t, fs, c, test.path).Path(); got != test.leads {
			t.Errorf("%s leads to %s, want %s", test.path, got, test.leads)
		}
	}
}

func TestErrors(t *testing.T) {
	fs, _, c := setUp(t)
	for _, test := range []struct {
		path  string
		flags int
		want  unix.Errno
	}{
		{"/proc/8", unix.O_RDONLY, unix.ENOENT},
		{"/proc/07", unix.O_RDONLY, unix.ENOENT},
		{"/proc/99999999999999", unix.O_RDONLY, unix.ENOENT},
		{"/proc/self/fd/1", unix.O_RDONLY, unix.ENOENT},
		{"/proc/1/environ", unix.O_RDONLY, unix.EACCES},
		{"/proc/1/maps", unix.O_RDONLY, unix.EACCES},
		{"/proc/1/exe", unix.O_RDONLY, unix.EACCES},
		{"/proc/1/fd/0", unix.O_RDONLY, unix.EACCES},
		{"/proc/new", unix.O_RDWR | unix.O_CREAT, unix.ENOENT},
		{"/proc/uptime", unix.O_RDWR, unix.EACCES},
		{"/proc/self/exe", unix.O_RDONLY | unix.O_NOFOLLOW, unix.ELOOP},
		{"/proc/uptime/x", unix.O_RDONLY, unix.ENOTDIR},
		{"/proc/self/task/1", unix.O_RDONLY, unix.ENOENT},
		{"/sys/fs/cgroup", unix.O_RDONLY, unix.ENOENT},
		{"/sys/devices/system/cpu/cpu4", unix.O_RDONLY, unix.ENOENT},
	} {
		f, errno := fs.Open(c, nil, test.path, test.flags, 0)
		if errno != test.want {
			t.Errorf("%s: %v, want %v", test.path, errno, test.want)
		}
		if f != nil {
			f.Unref()
		}
	}
	for path, want := range map[string]unix.Errno{"/proc": unix.EBUSY, "/proc/self": unix.EPERM, "/proc/7": unix.EPERM} {
		root := *c
		root.Cred = vfs.NewCred(0, 0)
		errno := fs.Rmdir(&root, nil, path)
		if path == "/proc/self" {
			errno = fs.Unlink(&root, nil, path)
		}
		if errno != want {
			t.Errorf("remove %s: %v, want %v", path, errno, want)
		}
	}
}

func TestStore(t *testing.T) {
	fs, k, c := setUp(t)
	put := func(path, text string) unix.Errno {
		f, errno := fs.Open(c, nil, path, unix.O_WRONLY|unix.O_TRUNC, 0)
		if errno != 0 {
			return errno
		}
		defer f.Unref()
		_, errno = f.Write(c, []byte(text))
		return errno
	}
	if errno := put("/proc/self/task/9/comm", "a name that is too long\n"); errno != 0 {
		t.Fatal(errno)
	}
	if got := cat(t, fs, c, "/proc/thread-self/comm"); got != "a name that is \n" {
		t.Errorf("comm %q", got)
	}
	if errno := put("/proc/self/oom_score_adj", "500\n"); errno != 0 || k.processes[1].score != 500 {
		t.Errorf("oom_score_adj: %v, %d", errno, k.processes[1].score)
	}
	if errno := put("/proc/self/oom_score_adj", "1"); errno != unix.EACCES {
		t.Errorf("a lower score: %v", errno)
	}
	if errno := put("/proc/self/oom_score_adj", "1001"); errno != unix.EINVAL {
		t.Errorf("a score out of range: %v", errno)
	}
}

// TestPtraceScope: root may write it, and the strictest value stays.
func TestPtraceScope(t *testing.T) {
	fs, k, c := setUp(t)
	const path = "/proc/sys/kernel/yama/ptrace_scope"
	put := func(c *vfs.Ctx, text string) unix.Errno {
		f, errno := fs.Open(c, nil, path, unix.O_WRONLY, 0)
		if errno != 0 {
			return errno
		}
		defer f.Unref()
		_, errno = f.Write(c, []byte(text))
		return errno
	}
	root := *c
	root.Cred = vfs.NewCred(0, 0)
	for _, step := range []struct {
		c    *vfs.Ctx
		text string
		want unix.Errno
		now  string
	}{
		{c, "1", unix.EACCES, "0\n"},
		{&root, "1\n", 0, "1\n"},
		{&root, "4", unix.EINVAL, "1\n"},
		{&root, "many", unix.EINVAL, "1\n"},
		{&root, "0", 0, "0\n"},
		{&root, "3", 0, "3\n"},
		{&root, "2", unix.EINVAL, "3\n"},
		{&root, "3", 0, "3\n"},
	} {
		if errno := put(step.c, step.text); errno != step.want {
			t.Errorf("writing %q: %v, want %v", step.text, errno, step.want)
		}
		if got := cat(t, fs, c, path); got != step.now {
			t.Errorf("after %q: %q, want %q", step.text, got, step.now)
		}
	}
	if k.scope != 3 {
		t.Errorf("the kernel has %d", k.scope)
	}
}

// TestSettings: the settings of leases are numbers that root may write.
func TestSettings(t *testing.T) {
	fs, _, c := setUp(t)
	root := *c
	root.Cred = vfs.NewCred(0, 0)
	for path, initial := range map[string]string{"/proc/sys/fs/lease-break-time": "45\n", "/proc/sys/fs/leases-enable": "1\n"} {
		if got := cat(t, fs, c, path); got != initial {
			t.Errorf("%s is %q, want %q", path, got, initial)
		}
		if _, errno := fs.Open(c, nil, path, unix.O_WRONLY, 0); errno != unix.EACCES {
			t.Errorf("%s: another than root opens it for writing: %v", path, errno)
		}
		f, errno := fs.Open(&root, nil, path, unix.O_WRONLY, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		for _, step := range []struct {
			text string
			want unix.Errno
			now  string
		}{
			{"-3\n", 0, "-3\n"}, {" 0x10 ", 0, "16\n"}, {"x", unix.EINVAL, "16\n"}, {"2147483648", unix.EINVAL, "16\n"}, {"0", 0, "0\n"},
		} {
			if _, errno := f.Write(&root, []byte(step.text)); errno != step.want {
				t.Errorf("%s: writing %q: %v, want %v", path, step.text, errno, step.want)
			}
			if got := cat(t, fs, c, path); got != step.now {
				t.Errorf("%s: after %q: %q, want %q", path, step.text, got, step.now)
			}
		}
		f.Unref()
	}
}

// TestShapes compares the form of files with the host's: the host's kernel is
// the oracle for keys, their order and for the number of fields.
func TestShapes(t *testing.T) {
	fs, _, c := setUp(t)
	if got, want := len(strings.Fields(strings.SplitN(cat(t, fs, c, "/proc/self/stat"), ")", 3)[2])), 50; got != want {
		t.Errorf("stat has %d fields behind the name, want %d", got, want)
	}
	for _, path := range []string{"/proc/self/status", "/proc/meminfo", "/proc/cpuinfo"} {
		shape(t, fs, c, path)
	}
	native, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		t.Skip(err)
	}
	if got := cat(t, fs, c, "/proc/self/limits"); got != string(native) {
		t.Errorf("limits:\n%s\nwant:\n%s", got, native)
	}
}

// shape checks that the host's file has the same keys in the same order.
func shape(t *testing.T, fs *vfs.FS, c *vfs.Ctx, path string) {
	t.Helper()
	native, err := os.ReadFile(path)
	if err != nil {
		t.Skip(err)
	}
	known, last := keys(string(native)), -1
	for _, key := range keys(cat(t, fs, c, path)) {
		at := slices.Index(known, key)
		if at < 0 {
			t.Errorf("%s: the host has no line %q", path, key)
		} else if at <= last {
			t.Errorf("%s: the line %q comes earlier on the host", path, key)
		}
		last = at
	}
}

// keys are the words before the colon of each line, each once.
func keys(text string) []string {
	var all []string
	for _, l := range strings.Split(text, "\n") {
		key, _, ok := strings.Cut(l, ":")
		if key = strings.TrimSpace(key); ok && !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all
}

func TestListing(t *testing.T) {
	fs, _, c := setUp(t)
	f, errno := fs.Open(c, nil, "/proc", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer f.Unref()
	buf := make([]byte, 8192)
	n, errno := f.Getdents(c, buf)
	if errno != 0 {
		t.Fatal(errno)
	}
	entries := vfs.ParseDirents(buf[:n])
	if entries[2].Name != "1" || entries[3].Name != "7" || entries[3].Type != unix.S_IFDIR {
		t.Errorf("entries %v", entries[:4])
	}
	for _, e := range entries[2:] {
		d, errno := fs.Lookup(c, nil, "/proc/"+e.Name, false)
		if errno != 0 || d.Inode().Ino() != e.Ino || d.Inode().Type() != e.Type {
			t.Errorf("%s: listed as %v, found as %v, %v", e.Name, e, d.Inode().Stat(), errno)
		}
	}
}

// TestEverything opens and reads each file, and finds that no two have the same
// inode number.
func TestEverything(t *testing.T) {
	fs, _, c := setUp(t)
	seen := map[uint64]string{}
	files := 0
	var walk func(path string)
	walk = func(path string) {
		d, errno := fs.Lookup(c, nil, path, false)
		if errno != 0 {
			t.Fatalf("%s: %v", path, errno)
		}
		if other, ok := seen[d.Inode().Ino()]; ok {
			t.Errorf("%s and %s have the same number", path, other)
		}
		seen[d.Inode().Ino()] = path
		if d.Inode().IsSymlink() || strings.HasPrefix(path, "/proc/1/") {
			return
		}
		f, errno := fs.OpenDentry(c, d, unix.O_RDONLY)
		if errno != 0 {
			t.Fatalf("open %s: %v", path, errno)
		}
		defer f.Unref()
		buf := make([]byte, 1<<16)
		if !d.Inode().IsDir() {
			files++
			if _, errno := f.Read(c, buf); errno != 0 {
				t.Errorf("read %s: %v", path, errno)
			}
			return
		}
		n, errno := f.Getdents(c, buf)
		if errno != 0 {
			t.Fatalf("list %s: %v", path, errno)
		}
		for _, e := range vfs.ParseDirents(buf[:n])[2:] {
			walk(path + "/" + e.Name)
		}
	}
	walk("/proc")
	seen = map[uint64]string{}
	walk("/sys")
	if files < 200 {
		t.Errorf("only %d files", files)
	}
}
