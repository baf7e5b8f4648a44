package procfs

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/inotify"
	"github.com/heddle-dmt/heddle/guest/ipc/mqueue"
	"github.com/heddle-dmt/heddle/guest/ipc/msg"
	"github.com/heddle-dmt/heddle/guest/ipc/sem"
	"github.com/heddle-dmt/heddle/guest/ipc/shm"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Limits that programs ask for.
const (
	pidMax      = 1 << 22
	pipeMaxSize = 1 << 20
	fileMax     = 1 << 20
)

// ptraceScope is /proc/sys/kernel/yama/ptrace_scope. The strictest value stays.
var ptraceScope = &entry{
	name: "ptrace_scope", mode: 0o644,
	text: func(r *request) ([]byte, unix.Errno) { return fmt.Appendln(nil, r.kernel.PtraceScope()), 0 },
	store: func(r *request, p []byte) unix.Errno {
		n, err := strconv.Atoi(strings.TrimSpace(string(p)))
		now := r.kernel.PtraceScope()
		switch {
		case !r.c.Cred.Can(vfs.CapSysPtrace):
			return unix.EPERM
		case err != nil, n < 0, n > strictestScope, now == strictestScope && n < now:
			return unix.EINVAL
		}
		r.kernel.SetPtraceScope(n)
		return 0
	},
}

const strictestScope = 3

// setting is a file of a number that root may write, as proc_dointvec of Linux makes it.
func setting(name string, field func(fs *vfs.FS) *int32) *entry {
	return &entry{
		name: name, mode: 0o644,
		text: func(r *request) ([]byte, unix.Errno) { return fmt.Appendln(nil, *field(r.fs)), 0 },
		store: func(r *request, p []byte) unix.Errno {
			n, err := strconv.ParseInt(strings.TrimSpace(string(p)), 0, 32)
			if err != nil {
				return unix.EINVAL
			}
			*field(r.fs) = int32(n)
			return 0
		},
	}
}

// procSys is /proc/sys. What can be changed there is the scope of ptrace and leases.
var procSys = folder("sys",
	folder("fs",
		fixed("aio-max-nr", "65536\n"),
		fixed("file-max", fmt.Sprintln(fileMax)),
		fixed("file-nr", fmt.Sprintf("0\t0\t%d\n", fileMax)),
		folder("inotify",
			fixed("max_queued_events", fmt.Sprintln(inotify.MaxQueued)),
			fixed("max_user_instances", fmt.Sprintln(inotify.MaxInstances)),
			fixed("max_user_watches", fmt.Sprintln(inotify.MaxWatches)),
		),
		setting("lease-break-time", func(fs *vfs.FS) *int32 { return &fs.Leases.BreakTime }),
		setting("leases-enable", func(fs *vfs.FS) *int32 { return &fs.Leases.Enabled }),
		fixed("mount-max", "100000\n"),
		folder("mqueue",
			fixed("msg_default", fmt.Sprintln(mqueue.DefaultMessages)),
			fixed("msg_max", fmt.Sprintln(mqueue.MaxMessages)),
			fixed("msgsize_default", fmt.Sprintln(mqueue.DefaultSize)),
			fixed("msgsize_max", fmt.Sprintln(mqueue.MaxSize)),
			fixed("queues_max", fmt.Sprintln(mqueue.MaxQueues)),
		),
		fixed("nr_open", fmt.Sprintln(fileMax)),
		fixed("overflowgid", "65534\n"),
		fixed("overflowuid", "65534\n"),
		fixed("pipe-max-size", fmt.Sprintln(pipeMaxSize)),
		fixed("pipe-user-pages-hard", "0\n"),
		fixed("pipe-user-pages-soft", "16384\n"),
		fixed("protected_hardlinks", "1\n"),
		fixed("protected_symlinks", "1\n"),
	),
	folder("kernel",
		fixed("cap_last_cap", "40\n"),
		fixed("core_pattern", "core\n"),
		fixed("core_uses_pid", "0\n"),
		line("domainname", func(r *request) string { return r.kernel.Machine().Domainname }),
		line("hostname", func(r *request) string { return r.kernel.Machine().Hostname }),
		fixed("kptr_restrict", "1\n"),
		fixed("msgmax", fmt.Sprintln(msg.MaxMessage)),
		fixed("msgmnb", fmt.Sprintln(msg.MaxBytes)),
		fixed("msgmni", fmt.Sprintln(msg.MaxQueues)),
		fixed("ngroups_max", "65536\n"),
		line("osrelease", func(r *request) string { return r.kernel.Machine().Release }),
		fixed("ostype", "Linux\n"),
		fixed("overflowgid", "65534\n"),
		fixed("overflowuid", "65534\n"),
		fixed("perf_event_paranoid", "4\n"),
		fixed("pid_max", fmt.Sprintln(pidMax)),
		folder("random",
			line("boot_id", func(r *request) string { return uuid(r.kernel.Machine().BootID) }),
			fixed("entropy_avail", "256\n"),
			fixed("poolsize", "256\n"),
			line("uuid", newUUID),
		),
		fixed("randomize_va_space", "2\n"),
		fixed("sched_deadline_period_max_us", "4194304\n"),
		fixed("sched_deadline_period_min_us", "100\n"),
		fixed("sched_rr_timeslice_ms", "100\n"),
		fixed("sched_rt_period_us", "1000000\n"),
		fixed("sched_rt_runtime_us", "950000\n"),
		fixed("sem", fmt.Sprintf("%d\t%d\t%d\t%d\n", sem.MaxPerSet, sem.MaxTotal, sem.MaxOperations, sem.MaxSets)),
		fixed("shm_rmid_forced", "0\n"),
		fixed("shmall", fmt.Sprintln(shm.MaxPages)),
		fixed("shmmax", fmt.Sprintln(shm.MaxSize)),
		fixed("shmmni", fmt.Sprintln(shm.MaxSegments)),
		fixed("tainted", "0\n"),
		number("threads-max", func(r *request) int64 { return int64(r.kernel.Machine().MaxThreads) }),
		line("version", func(r *request) string { return r.kernel.Machine().Version }),
		folder("yama", ptraceScope),
	),
	folder("net",
		folder("core",
			fixed("rmem_default", "212992\n"),
			fixed("rmem_max", "212992\n"),
			fixed("somaxconn", "4096\n"),
			fixed("wmem_default", "212992\n"),
			fixed("wmem_max", "212992\n"),
		),
		folder("ipv4",
			fixed("ip_local_port_range", "32768\t60999\n"),
			fixed("tcp_fin_timeout", "60\n"),
		),
	),
	folder("vm",
		fixed("max_map_count", "65530\n"),
		fixed("min_free_kbytes", "0\n"),
		fixed("mmap_min_addr", "65536\n"),
		fixed("nr_hugepages", "0\n"),
		fixed("overcommit_memory", "0\n"),
		fixed("overcommit_ratio", "50\n"),
		fixed("swappiness", "60\n"),
	),
)

// uuid writes 16 bytes as RFC 4122 does, marked as version 4.
func uuid(b [16]byte) string {
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newUUID is another one at each look.
func newUUID(r *request) string {
	var b [16]byte
	r.fs.Entropy.Read(b[:])
	return uuid(b)
}
