package conformance

import (
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

// inlined are functions that headers define inline, so that no binary refers
// to them; the sources name them.
var inlined = []string{"pthread_equal", "thrd_equal"}

// libcThreads lists the thread functions that the installed C library exports
// for new programs: POSIX threads and semaphores, and C11 threads.
func libcThreads(t *testing.T) []string {
	t.Helper()
	file, err := exec.Command("gcc", "-print-file-name=libc.so.6").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range symbols(t, "--defined-only", strings.TrimSpace(string(file))) {
		name, version, ok := strings.Cut(m, "@@") // one @: kept for old programs only
		if ok && version != "GLIBC_PRIVATE" && regexp.MustCompile(`^(pthread|sem|thrd|mtx|cnd|tss)_|^call_once$`).MatchString(name) {
			all = append(all, name)
		}
	}
	return all
}

// symbols lists the names in a dynamic symbol table.
func symbols(t *testing.T, which, file string) []string {
	t.Helper()
	out, err := exec.Command("nm", "-D", which, file).Output()
	if err != nil {
		t.Fatalf("nm %s: %v", file, err)
	}
	var all []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		all = append(all, fields[len(fields)-1])
	}
	return all
}

// TestEveryThreadFunction checks that each thread function of the C library is
// called by a program that exists as a static one too.
func TestEveryThreadFunction(t *testing.T) {
	testsize.SkipQuick(t)
	want := libcThreads(t)
	if len(want) < 150 {
		t.Fatalf("the C library has %d thread functions only: %q", len(want), want)
	}
	called := map[string]bool{}
	for _, p := range Programs() {
		if p.DynamicOnly != "" {
			continue
		}
		bin, err := p.Build(false)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range symbols(t, "--undefined-only", bin) {
			name, _, _ = strings.Cut(name, "@")
			called[name] = true
		}
	}
	for _, name := range want {
		if !called[name] && !(slices.Contains(inlined, name) && strings.Contains(allSources(t), name+"(")) {
			t.Errorf("no program calls %s", name)
		}
	}
}

// allSources is the text of all programs.
func allSources(t *testing.T) string {
	t.Helper()
	entries, err := sources.ReadDir("src")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range entries {
		text, err := sources.ReadFile(path.Join("src", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// named are constants that the programs must use, as they do not show in the
// names of functions or calls.
var named = map[string][]string{
	"futex operations": {
		"FUTEX_WAIT", "FUTEX_WAKE", "FUTEX_WAIT_PRIVATE", "FUTEX_WAIT_BITSET", "FUTEX_WAKE_BITSET", "FUTEX_REQUEUE",
		"FUTEX_CMP_REQUEUE", "FUTEX_WAKE_OP", "FUTEX_PRIVATE_FLAG", "FUTEX_CLOCK_REALTIME", "FUTEX_LOCK_PI", "FUTEX_LOCK_PI2",
		"FUTEX_WAIT_REQUEUE_PI", "FUTEX_CMP_REQUEUE_PI",
		"FUTEX_UNLOCK_PI", "FUTEX_TRYLOCK_PI", "FUTEX_OWNER_DIED", "FUTEX_WAITERS", "SYS_set_robust_list",
		"SYS_get_robust_list", "FUTEX_OP_SET", "FUTEX_OP_ADD", "FUTEX_OP_OR", "FUTEX_OP_ANDN", "FUTEX_OP_XOR",
	},
	"signal handling": {
		"SA_SIGINFO", "SA_RESTART", "SA_NODEFER", "SA_RESETHAND", "SA_ONSTACK", "SA_NOCLDSTOP", "SA_NOCLDWAIT",
		"sigaltstack(", "sigpending(", "sigsuspend(", "sigwait(", "sigwaitinfo(", "sigtimedwait(", "siglongjmp(",
		"SYS_tgkill", "SYS_tkill", "sigqueue(", "pthread_sigqueue(", "raise(", "abort(", "alarm(", "setitimer(",
		"timer_create(", "SIGEV_SIGNAL", "SIGEV_THREAD", "SIGEV_THREAD_ID", "signalfd(", "SEGV_MAPERR", "SEGV_ACCERR",
		"BUS_ADRERR", "FPE_INTDIV", "TRAP_", "SIGILL", "SI_TKILL", "SI_QUEUE", "SI_TIMER", "SI_USER", "CLD_EXITED",
		"CLD_KILLED", "CLD_STOPPED", "CLD_CONTINUED", "SIGRTMIN",
	},
	"mutexes": {
		"PTHREAD_MUTEX_NORMAL", "PTHREAD_MUTEX_RECURSIVE", "PTHREAD_MUTEX_ERRORCHECK", "PTHREAD_MUTEX_ROBUST",
		"PTHREAD_PRIO_INHERIT", "PTHREAD_PRIO_PROTECT", "PTHREAD_PROCESS_SHARED", "PTHREAD_CANCEL_ASYNCHRONOUS", "PTHREAD_CANCEL_DEFERRED",
		"pthread_cleanup_push(",
	},
	"scheduling": {
		"SCHED_FIFO", "SCHED_RR", "SCHED_BATCH", "SCHED_IDLE", "SCHED_DEADLINE", "SCHED_RESET_ON_FORK", "SYS_sched_setattr",
		"SYS_sched_getattr", "PTHREAD_EXPLICIT_SCHED",
	},
	"capabilities": {
		"PR_CAPBSET_DROP", "PR_CAP_AMBIENT_RAISE", "PR_SET_KEEPCAPS", "PR_SET_SECUREBITS", "AT_SECURE", "CAP_DAC_OVERRIDE",
		"CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_CHOWN", "CAP_KILL",
	},
	"processes": {
		"CLONE_VM", "CLONE_FS", "CLONE_FILES", "CLONE_SIGHAND", "CLONE_THREAD", "CLONE_VFORK", "CLONE_PARENT_SETTID",
		"CLONE_CHILD_CLEARTID", "CLONE_SETTLS", "WNOHANG", "WUNTRACED", "WCONTINUED", "WNOWAIT", "PR_SET_PDEATHSIG",
		"PR_SET_CHILD_SUBREAPER", "posix_spawn(", "vfork(", "setsid(", "setpgid(",
	},
}

// TestNamed checks that no operation, flag or code is left out.
func TestNamed(t *testing.T) {
	text := allSources(t)
	for what, list := range named {
		for _, name := range list {
			if !strings.Contains(text, name) {
				t.Errorf("%s: no program has %s", what, name)
			}
		}
	}
}
