package procfs

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/ipc/msg"
	"github.com/heddle-dmt/heddle/guest/ipc/sem"
	"github.com/heddle-dmt/heddle/guest/ipc/shm"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Limits that programs read.
const (
	pidMax      = 1 << 22
	pipeMaxSize = 1 << 20
	fileMax     = 1 << 20
)

// MaxOpenFiles is /proc/sys/fs/nr_open, the highest limit of a process on its open files.
const MaxOpenFiles = 1 << 20

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

// setting is a file of a number that root may write, like proc_dointvec of Linux.
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

// procSys is /proc/sys. The scope of ptrace and leases can be changed there.
var procSys = fixedFolder("sys",
	fixedFolder("fs",
		constantFile("aio-max-nr", "65536\n"),
		constantFile("file-max", fmt.Sprintln(fileMax)),
		constantFile("file-nr", fmt.Sprintf("0\t0\t%d\n", fileMax)),
		fixedFolder("inotify",
			constantFile("max_queued_events", fmt.Sprintln(linux.InotifyMaxQueuedEvents)),
			constantFile("max_user_instances", fmt.Sprintln(linux.InotifyMaxUserInstances)),
			constantFile("max_user_watches", fmt.Sprintln(linux.InotifyMaxUserWatches)),
		),
		setting("lease-break-time", func(fs *vfs.FS) *int32 { return &fs.Leases.BreakTime }),
		setting("leases-enable", func(fs *vfs.FS) *int32 { return &fs.Leases.Enabled }),
		constantFile("mount-max", "100000\n"),
		fixedFolder("mqueue",
			constantFile("msg_default", fmt.Sprintln(linux.MqueueDefaultMessages)),
			constantFile("msg_max", fmt.Sprintln(linux.MqueueMaxMessages)),
			constantFile("msgsize_default", fmt.Sprintln(linux.MqueueDefaultSize)),
			constantFile("msgsize_max", fmt.Sprintln(linux.MqueueMaxSize)),
			constantFile("queues_max", fmt.Sprintln(linux.MqueueMaxQueues)),
		),
		constantFile("nr_open", fmt.Sprintln(MaxOpenFiles)),
		constantFile("overflowgid", "65534\n"),
		constantFile("overflowuid", "65534\n"),
		constantFile("pipe-max-size", fmt.Sprintln(pipeMaxSize)),
		constantFile("pipe-user-pages-hard", "0\n"),
		constantFile("pipe-user-pages-soft", "16384\n"),
		constantFile("protected_hardlinks", "1\n"),
		constantFile("protected_symlinks", "1\n"),
	),
	fixedFolder("kernel",
		constantFile("cap_last_cap", "40\n"),
		constantFile("core_pattern", "core\n"),
		constantFile("core_uses_pid", "0\n"),
		lineFile("domainname", func(r *request) string { return r.kernel.Machine().Domainname }),
		lineFile("hostname", func(r *request) string { return r.kernel.Machine().Hostname }),
		constantFile("kptr_restrict", "1\n"),
		constantFile("msgmax", fmt.Sprintln(msg.MaxMessage)),
		constantFile("msgmnb", fmt.Sprintln(msg.MaxBytes)),
		constantFile("msgmni", fmt.Sprintln(msg.MaxQueues)),
		constantFile("ngroups_max", "65536\n"),
		lineFile("osrelease", func(r *request) string { return r.kernel.Machine().Release }),
		constantFile("ostype", "Linux\n"),
		constantFile("overflowgid", "65534\n"),
		constantFile("overflowuid", "65534\n"),
		constantFile("perf_event_paranoid", "4\n"),
		constantFile("pid_max", fmt.Sprintln(pidMax)),
		fixedFolder("random",
			lineFile("boot_id", func(r *request) string { return uuidText(r.kernel.Machine().BootID) }),
			constantFile("entropy_avail", "256\n"),
			constantFile("poolsize", "256\n"),
			lineFile("uuid", newUUID),
		),
		constantFile("randomize_va_space", "2\n"),
		constantFile("sched_deadline_period_max_us", "4194304\n"),
		constantFile("sched_deadline_period_min_us", "100\n"),
		constantFile("sched_rr_timeslice_ms", "100\n"),
		constantFile("sched_rt_period_us", "1000000\n"),
		constantFile("sched_rt_runtime_us", "950000\n"),
		constantFile("sem", fmt.Sprintf("%d\t%d\t%d\t%d\n", sem.MaxPerSet, sem.MaxTotal, sem.MaxOperations, sem.MaxSets)),
		constantFile("shm_rmid_forced", "0\n"),
		constantFile("shmall", fmt.Sprintln(shm.MaxPages)),
		constantFile("shmmax", fmt.Sprintln(shm.MaxSize)),
		constantFile("shmmni", fmt.Sprintln(shm.MaxSegments)),
		constantFile("tainted", "0\n"),
		numberFile("threads-max", func(r *request) int64 { return int64(r.kernel.Machine().MaxThreads) }),
		lineFile("version", func(r *request) string { return r.kernel.Machine().Version }),
		fixedFolder("yama", ptraceScope),
	),
	fixedFolder("net",
		fixedFolder("core",
			constantFile("rmem_default", "212992\n"),
			constantFile("rmem_max", "212992\n"),
			constantFile("somaxconn", "4096\n"),
			constantFile("wmem_default", "212992\n"),
			constantFile("wmem_max", "212992\n"),
		),
		fixedFolder("ipv4",
			constantFile("ip_local_port_range", "32768\t60999\n"),
			constantFile("tcp_fin_timeout", "60\n"),
		),
	),
	fixedFolder("vm",
		constantFile("max_map_count", "65530\n"),
		constantFile("min_free_kbytes", "0\n"),
		constantFile("mmap_min_addr", "65536\n"),
		constantFile("nr_hugepages", "0\n"),
		constantFile("overcommit_memory", "0\n"),
		constantFile("overcommit_ratio", "50\n"),
		constantFile("swappiness", "60\n"),
	),
)

// uuidText writes 16 bytes as RFC 4122 does, marked as version 4.
func uuidText(b [16]byte) string {
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newUUID is another one at each read.
func newUUID(r *request) string {
	var b [16]byte
	r.fs.Entropy.Read(b[:])
	return uuidText(b)
}
