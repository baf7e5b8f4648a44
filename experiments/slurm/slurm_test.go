package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

// heddle builds the program, or returns the one in HEDDLE_BIN.
func heddle(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("HEDDLE_BIN"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "heddle")
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/heddle").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// testCluster is a Slurm of several nodes on this host, whose daemons and files are the test's own.
type testCluster struct {
	t       *testing.T
	dir     string
	conf    string
	nodes   map[string]*exec.Cmd
	daemons []*exec.Cmd
	heddle  string
	munge   string
}

const nodes = 4

// start starts a cluster, or skips the test with a reason.
func start(t *testing.T) *testCluster {
	t.Helper()
	if os.Getenv("HEDDLE_SLURM") == "" && !testsize.Long() {
		t.Skip("left to make slurm and make long")
	}
	if os.Getuid() != 0 {
		t.Skip("the daemons of Slurm need root")
	}
	for _, program := range []string{"munged", "slurmctld", "slurmd", "sbatch", "runuser"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s: internal/setup/packages.sh slurm installs the packages", program)
		}
	}
	c := &testCluster{t: t, dir: shortDir(t), nodes: map[string]*exec.Cmd{}, heddle: heddle(t)}
	c.startMunge()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	c.conf = filepath.Join(c.dir, "slurm.conf")
	c.write("slurm.conf", fmt.Sprintf(`ClusterName=test
SlurmctldHost=%[1]s(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%[3]s
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
SlurmctldPort=%[4]d
SlurmdTimeout=10
InactiveLimit=0
KillWait=5
MinJobAge=300
SchedulerParameters=batch_sched_delay=1,sched_interval=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/spool.%%n
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdPidFile=%[2]s/slurmd.%%n.pid
SlurmctldLogFile=%[2]s/slurmctld.log
SlurmdLogFile=%[2]s/slurmd.%%n.log
NodeName=n[1-%[5]d] NodeHostname=%[1]s NodeAddr=127.0.0.1 Port=[%[6]d-%[7]d] CPUs=1 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
`, host, c.dir, c.munge, port, nodes, port+1, port+nodes))
	if err := os.MkdirAll(filepath.Join(c.dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.daemon(exec.Command("slurmctld", "-D", "-f", c.conf))
	for i := 1; i <= nodes; i++ {
		c.startNode(fmt.Sprintf("n%d", i))
	}
	c.await("all nodes idle", func() bool { return strings.Count(c.slurm("sinfo", "-h", "-N", "-o", "%N %T"), " idle") == nodes })
	return c
}

// port is the first of those of the daemons.
const port = 17400

// shortDir is a folder whose path is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "slurm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("kept: %s", dir)
			return
		}
		os.RemoveAll(dir)
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (c *testCluster) write(name, text string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// startMunge starts a munged of the test's own: its key, socket and files are in the folder.
func (c *testCluster) startMunge() {
	t := c.t
	t.Helper()
	munge, err := user.Lookup("munge")
	if err != nil {
		t.Skipf("there is no user munge: %v", err)
	}
	uid, _ := strconv.Atoi(munge.Uid)
	gid, _ := strconv.Atoi(munge.Gid)
	dir := filepath.Join(c.dir, "munge")
	key := filepath.Join(dir, "key")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(key, bytes.Repeat([]byte("key of a test. "), 20), 0o400), os.Chown(dir, uid, gid), os.Chown(key, uid, gid)); err != nil {
		t.Fatal(err)
	}
	c.munge = filepath.Join(dir, "socket")
	c.daemon(exec.Command("runuser", "-u", "munge", "--", "munged", "--foreground", "--force", "--socket="+c.munge, "--key-file="+key,
		"--pid-file="+filepath.Join(dir, "pid"), "--log-file="+filepath.Join(dir, "log"), "--seed-file="+filepath.Join(dir, "seed")))
	c.await("munge's socket", func() bool {
		_, err := os.Stat(c.munge)
		return err == nil
	})
}

// daemon starts a daemon in the foreground, which ends with the test.
func (c *testCluster) daemon(cmd *exec.Cmd) *exec.Cmd {
	c.t.Helper()
	log, err := os.Create(filepath.Join(c.dir, filepath.Base(cmd.Path)+fmt.Sprint(len(c.daemons))+".out"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.daemons = append(c.daemons, cmd)
	c.t.Cleanup(func() { stop(cmd) })
	return cmd
}

// stop ends a daemon with its children.
func stop(cmd *exec.Cmd) {
	if cmd.ProcessState != nil {
		return
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	timer := time.AfterFunc(10*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	_ = cmd.Wait()
	timer.Stop()
}

func (c *testCluster) startNode(name string) {
	c.nodes[name] = c.daemon(exec.Command("slurmd", "-D", "-f", c.conf, "-N", name))
}

// killNode is a loss of power: the daemon, its helpers and its tasks end at once.
func (c *testCluster) killNode(name string) {
	c.t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		c.t.Fatal(err)
	}
	_ = syscall.Kill(-c.nodes[name].Process.Pid, syscall.SIGKILL)
	_ = c.nodes[name].Wait()
	for _, path := range list {
		text, _ := os.ReadFile(path)
		variables := strings.Split(string(text), "\x00")
		if slices.Contains(variables, "SLURMD_NODENAME="+name) && slices.Contains(variables, "SLURM_CONF="+c.conf) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// slurm executes a command of Slurm.
func (c *testCluster) slurm(name string, args ...string) string {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf)
	out, _ := cmd.CombinedOutput()
	return string(out)
}

func (c *testCluster) await(what string, holds func() bool) {
	c.t.Helper()
	for range 600 {
		if holds() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.t.Fatalf("in a minute there were no %s; the cluster: %s", what, c.slurm("sinfo", "-N", "-l"))
}

// command is a command of heddle on the cluster.
func (c *testCluster) command(args ...string) *exec.Cmd {
	cmd := exec.Command(c.heddle, args...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf)
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// run runs heddle, and demands an exit status.
func (c *testCluster) run(status int, args ...string) (stdout, stderr string) {
	c.t.Helper()
	var out, text bytes.Buffer
	cmd := c.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &text
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != status {
		c.t.Fatalf("%v: status %d, want %d\n%s", args, got, status, tail(text.String()))
	}
	return out.String(), text.String()
}

func tail(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// sweepFile is an experiment of short runs.
func (c *testCluster) sweepFile(seeds int) string {
	return c.write("sweep.yaml", fmt.Sprintf(`
programs:
  - {name: "true", command: [/bin/true]}
  - {name: echo, command: [echo, "{word}"]}
  - {name: status, command: [sh, -c, "exit {word}"]}
grid: {seeds: 1-%d, policy: [timed, rr], arguments: {word: [1, 2]}}
values: [{name: number, pattern: '\d'}]
`, seeds))
}

// TestSweepOnSlurm: a sweep over four nodes gives the table of one machine, although a node is lost, a task is
// requeued, another killed, and the command killed and started again.
func TestSweepOnSlurm(t *testing.T) {
	c := start(t)
	const seeds = 200 // 10 runs for each
	file := c.sweepFile(seeds)
	c.run(0, "experiment", "run", "--store", "one.sqlite", file)
	want, _ := c.run(0, "experiment", "table", "--format", "csv", "--store", "one.sqlite", file)
	if n := strings.Count(want, "\n"); n != 11 {
		t.Fatalf("%d lines:\n%s", n, want)
	}

	args := []string{"experiment", "run", "--store", "four.sqlite", "--slurm", "--array-size", "40", "--concurrent", strconv.Itoa(nodes), file}
	var stderr bytes.Buffer
	first := c.command(args...)
	first.Stderr = &stderr
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	running := func() []string { return strings.Fields(c.slurm("squeue", "-h", "-t", "R", "-o", "%A:%N")) }
	c.await("running tasks", func() bool { return len(running()) >= 2 })
	// A task is requeued, the process of another is killed, and a node is lost.
	task, _, _ := strings.Cut(running()[0], ":")
	c.slurm("scontrol", "requeue", task)
	c.await("running tasks", func() bool { return len(running()) >= 2 })
	_, node, _ := strings.Cut(running()[0], ":")
	c.killNode(node)
	if task, _, _ = strings.Cut(running()[len(running())-1], ":"); c.slurm("scancel", "--signal=KILL", "--full", task) != "" {
		t.Errorf("task %s is not killed", task)
	}
	// The command is killed, and another finds its job.
	_ = first.Process.Kill()
	_ = first.Wait()
	c.await("node down", func() bool { return strings.Contains(c.slurm("sinfo", "-h", "-N", "-n", node, "-o", "%T"), "down") })
	c.startNode(node)
	_, second := c.run(0, args...)
	if !strings.Contains(second, "is under way already") || !strings.Contains(second, "2000 of 2000 runs are stored") {
		t.Errorf("%s\n%s", tail(stderr.String()), tail(second))
	}
	got, _ := c.run(0, "experiment", "table", "--format", "csv", "--store", "four.sqlite", file)
	if got != want {
		t.Errorf("the table is\n%s, want\n%s", got, want)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "four.slurm")); err == nil {
		t.Error("the folder of the job is left")
	}
	// Merging the one machine's store compares every run.
	merged, _ := c.run(0, "experiment", "merge", "--store", "four.sqlite", file, "one.sqlite")
	if merged != "0 runs taken over, 2000 equal to those there\n" {
		t.Error(merged)
	}
	if _, again := c.run(0, args...); strings.Contains(again, "the Slurm job") {
		t.Errorf("a job for nothing: %s", again)
	}
}

// TestInterruptionOnSlurm: after Ctrl-C the job goes on, and what Slurm refuses is a sentence.
func TestInterruptionOnSlurm(t *testing.T) {
	c := start(t)
	file := c.write("long.yaml", "programs: [{name: long, command: [sh, -c, 'i=0; while test $i -lt 20000; do i=$((i+1)); done']}]\ngrid: {seeds: 1-8}\nnative: false\n")
	_, stderr := c.run(125, "experiment", "run", "--slurm", "--partition", "none", file)
	if !strings.HasPrefix(stderr, "heddle: Slurm refuses the job array: ") || !strings.Contains(stderr, "Invalid partition name specified") {
		t.Error(stderr)
	}
	var text bytes.Buffer
	cmd := c.command("experiment", "run", "--slurm", "--array-size", "8", file)
	cmd.Stderr = &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.await("job", func() bool { return strings.TrimSpace(c.slurm("squeue", "-h")) != "" })
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 130 || !strings.Contains(text.String(), " goes on; the same command watches it again") {
		t.Errorf("status %d: %s", got, text.String())
	}
	_, stderr = c.run(0, "experiment", "run", "--slurm", file)
	if !strings.Contains(stderr, "8 of 8 runs are stored") {
		t.Error(tail(stderr))
	}
}

// inPath puts programs that stand for Slurm's into PATH.
func inPath(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestQueue reads what squeue prints (Slurm 22.05).
func TestQueue(t *testing.T) {
	for _, c := range []struct {
		script string
		want   queue
		err    string
	}{
		{"printf 'RUNNING None\\nPENDING Resources\\nPENDING JobArrayTaskLimit\\nCOMPLETING None\\n'", queue{2, 2, "Resources"}, ""},
		{"true", queue{}, ""},
		{"echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", queue{}, ""},
		{"echo 'squeue: error: Unable to contact slurm controller' >&2; exit 1", queue{}, "Slurm refuses the job array: Unable to contact slurm controller"},
	} {
		inPath(t, map[string]string{"squeue": c.script})
		q, err := askQueue("7")
		if q != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %+v, %v", c.script, q, err)
		}
	}
	inPath(t, map[string]string{"scontrol": "echo 'MaxArraySize            = 51'"})
	if n := largestArray(); n != 50 {
		t.Errorf("at most %d tasks", n)
	}
	inPath(t, map[string]string{"scontrol": "exit 1"})
	if n := largestArray(); n != 1000 {
		t.Errorf("at most %d tasks", n)
	}
}

// TestQuestions: an interruption asks what becomes of the job.
func TestQuestions(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	inPath(t, map[string]string{"scancel": "echo scancel $* >>" + log, "squeue": "true"})
	for answer, want := range map[string]string{"w\n": "", "l\n": "goes on", "\n": "goes on", "c\n": "was cancelled"} {
		c := &cluster{folder: t.TempDir(), options: Options{Ask: func(string) string { return answer }}}
		ctx, again, err := c.interrupted(&state{Job: "12"})
		if again != (want == "") || again && ctx.Err() != nil || err != nil && (!strings.Contains(err.Error(), want) || !errors.Is(err, context.Canceled)) {
			t.Errorf("%q: %v, %v", answer, again, err)
		}
	}
	if text, _ := os.ReadFile(log); string(text) != "scancel 12\n" {
		t.Errorf("scancel was called as %q", text)
	}
}

// invented is a sweep whose missing runs are a list of numbers, one for each question.
type invented struct {
	missing []int
	failed  []bool // whether the questions were about failed runs, too
}

func (f *invented) Missing(failed bool) ([]int, error) {
	n := f.missing[0]
	f.missing, f.failed = f.missing[1:], append(f.failed, failed)
	return make([]int, n), nil
}

func (f *invented) Merge([]string) ([]string, error) { return nil, nil }

// TestRounds: runs that were lost are submitted again while there are fewer each time, and not
// for ever.
func TestRounds(t *testing.T) {
	for _, c := range []struct {
		missing []int
		arrays  string
		err     error
	}{
		{[]int{0}, "", nil},
		{[]int{5, 0}, "0-2", nil},
		{[]int{5, 2, 0}, "0-2 0-1", nil},
		{[]int{5, 5, 2, 2, 1, 0}, "0-2 0-2 0-1 0-1 0-0", nil},
		{[]int{5, 5, 5}, "0-2 0-2", errLost},
	} {
		dir := t.TempDir()
		inPath(t, map[string]string{
			"sbatch": "for a; do case $a in --array=*) echo ${a#--array=} >>" + dir + "/arrays;; esac; done; echo '7;cluster'", "squeue": "true", "scancel": "true", "scontrol": "exit 1", "sacct": "exit 1",
		})
		f := &invented{missing: c.missing}
		_, err := Run(t.Context(), f, Files{Name: "x", Experiment: "x.yaml", Store: filepath.Join(dir, "x.sqlite"), Inputs: dir}, Options{ArraySize: 3, Say: func(string, ...any) {}})
		if !errors.Is(err, c.err) {
			t.Errorf("%v: %v", c.missing, err)
		}
		text, _ := os.ReadFile(filepath.Join(dir, "arrays"))
		if got := strings.Join(strings.Fields(string(text)), " "); got != c.arrays {
			t.Errorf("%v: arrays %q, want %q", c.missing, got, c.arrays)
		}
		if !f.failed[0] || slices.Contains(f.failed[1:], true) {
			t.Errorf("%v: failed runs are asked for %v", c.missing, f.failed)
		}
		if _, err := os.Stat(filepath.Join(dir, "x.slurm")); (err == nil) != (c.err != nil) {
			t.Errorf("%v: the folder: %v", c.missing, err)
		}
	}
}

// TestWatchingFurther: a job is watched further after an interruption that was answered so.
func TestWatchingFurther(t *testing.T) {
	dir := t.TempDir()
	inPath(t, map[string]string{"sbatch": "echo 7", "squeue": "test -e " + dir + "/ended || echo 'RUNNING None'", "scancel": "true", "scontrol": "exit 1"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	asked := 0
	ask := func(string) string {
		asked++
		if err := os.WriteFile(filepath.Join(dir, "ended"), nil, 0o644); err != nil {
			t.Error(err)
		}
		return "w"
	}
	f := &invented{missing: []int{0}}
	c := &cluster{sweep: f, folder: dir, options: Options{Ask: ask, Say: func(string, ...any) {}, Poll: time.Millisecond}}
	next, err := c.watch(ctx, &state{Job: "7", Tasks: 1})
	if err != nil || asked != 1 || next.Err() != nil {
		t.Errorf("%v, asked %d times", err, asked)
	}
}
