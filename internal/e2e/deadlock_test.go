package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// stuck are the ways in which testdata/deadlock.c waits for ever, with the
// report of each thread: its name and state, then the functions that are
// active in it, the innermost first. Functions of the C library are named only
// where its symbol table is sure to have them.
var stuck = []struct {
	way     string
	message string
	threads [][]string
}{
	{"order", "heddle: deadlock: every thread waits, and nothing will wake one", [][]string{
		{`thread 1000 "NAME" of process 1000`, "waits in futex on the word at 0x", "opposite_order+0x", "main+0x", "_start+0x"},
		{`thread 1001 "there" of process 1000`, "waits in futex on the word at 0x", "pthread_mutex_lock+0x", "lock_first_then+0x", "forward+0x"},
		{`thread 1002 "back" of process 1000`, "waits in futex on the word at 0x", "pthread_mutex_lock+0x", "lock_first_then+0x", "backward+0x"},
	}},
	{"twice", "heddle: deadlock: every thread waits, and nothing will wake one", [][]string{
		{`thread 1000 "NAME" of process 1000`, "waits in futex on the word at 0x", "pthread_mutex_lock+0x", "lock_twice+0x", "main+0x"},
	}},
	{"lost", "heddle: deadlock: every thread waits, and nothing will wake one", [][]string{
		{`thread 1000 "NAME" of process 1000`, "waits in futex on the word at 0x", "pthread_cond_wait+0x", "wait_for_signal+0x", "main+0x"},
	}},
	{"pipe", "heddle: deadlock: every thread waits, and nothing will wake one", [][]string{
		{`thread 1000 "NAME" of process 1000`, "waits in read (first argument 0x3)", "read+0x", "read_from_nobody+0x", "main+0x"},
	}},
	{"child", "heddle: deadlock: every thread waits, and nothing will wake one", [][]string{
		{`thread 1000 "NAME" of process 1000`, "waits in wait4 (first argument 0x3e9)", "wait4+0x", "wait_for_child+0x", "main+0x"},
		{`thread 1001 "NAME" of process 1001`, "waits in futex on the word at 0x", "wait_for_child+0x", "main+0x"},
	}},
	{"timer", "heddle: deadlock: every thread waits, and nothing will wake one", [][]string{
		{`thread 1000 "NAME" of process 1000`, "waits in pause", "wait_beside_timer+0x", "main+0x"},
	}},
	{"spin", "heddle: the limit of 3000000 instructions is reached", [][]string{
		{`thread 1000 "NAME" of process 1000`, "runnable at 0x", "spin+0x", "main+0x"},
	}},
	{"threads", "heddle: the limit of 3000000 instructions is reached", [][]string{
		{`thread 1000 "NAME" of process 1000`, "sleep_and_spin+0x", "main+0x"},
		{`thread 1001 "NAME" of process 1000`, "runnable at 0x", "spin+0x", "spin_in_thread+0x"},
	}},
}

// paragraphs splits the report of the threads.
func paragraphs(stderr string) []string {
	var all []string
	for _, line := range strings.Split(stderr, "\n") {
		if strings.HasPrefix(line, "thread ") {
			all = append(all, "")
		}
		if n := len(all); n > 0 && (strings.HasPrefix(line, "thread ") || strings.HasPrefix(line, "    ")) {
			all[n-1] += line + "\n"
		}
	}
	return all
}

// inOrder returns the first of words that text does not have after those
// before it, or "".
func inOrder(text string, words []string) string {
	for _, w := range words {
		_, after, found := strings.Cut(text, w)
		if !found {
			return w
		}
		text = after
	}
	return ""
}

func TestDeadlocksAndEndlessPrograms(t *testing.T) {
	for _, form := range []struct{ name, flag string }{{"dynamic", "-pie"}, {"static", "-static"}} {
		for _, s := range stuck {
			t.Run(s.way+"/"+form.name, func(t *testing.T) {
				t.Parallel()
				program := compile(t, "deadlock", form.flag)
				flags := []string{"--max-instructions", "3000000", "--seed", "9"}
				o, r := summarize(t, filepath.Dir(program), nil, flags, program, s.way)
				if o.status != 124 || r.ExitCode != 124 || o.stdout != "begun\n" {
					t.Errorf("status %d, in the summary %d: %v", o.status, r.ExitCode, o)
				}
				if first, _, _ := strings.Cut(o.stderr, "\n"); first != s.message {
					t.Errorf("message %q, want %q", first, s.message)
				}
				threads := paragraphs(o.stderr)
				if len(threads) != len(s.threads) {
					t.Fatalf("%d threads, want %d: %v", len(threads), len(s.threads), o)
				}
				for i, words := range s.threads {
					words[0] = strings.Replace(words[0], "NAME", filepath.Base(program), 1)
					if missing := inOrder(threads[i], words); missing != "" {
						t.Errorf("%q is missing, or not where it should be:\n%s", missing, threads[i])
					}
				}
			})
		}
	}
}

// TestRepeatCommand runs the command that heddle prints.
func TestRepeatCommand(t *testing.T) {
	program := compile(t, "deadlock", "-pie")
	dir := filepath.Dir(program)
	first, r := summarize(t, dir, nil, []string{"--seed", "11", "--cores", "3"}, program, "order")
	_, printed, found := strings.Cut(first.stderr, "heddle: the same run again: heddle ")
	if !found || strings.Count(strings.TrimSpace(printed), "\n") != 0 {
		t.Fatalf("no command of one line: %v", first)
	}
	again := filepath.Join(t.TempDir(), "again.json")
	line := strings.Replace(strings.TrimSpace(printed), "run ", bin+" run --summary="+again+" ", 1)
	second := execute(t, dir, nil, "sh", "-c", line)
	digests := execute(t, dir, nil, "grep", `"digest"`, again)
	if second.status != first.status || !strings.Contains(digests.stdout, r.Digest) {
		t.Errorf("the command %q:\n%v\n%s\nwant the digest %s", line, second, digests.stdout, r.Digest)
	}
}
