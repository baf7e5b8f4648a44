// Package slurm carries out the missing runs of an experiment on a cluster with Slurm, by Slurm's own
// commands alone: sbatch, squeue, scancel, scontrol and, where there is accounting, sacct.
//
// The missing runs are divided among the tasks of a job array. Each task is heddle experiment run with
// the numbers of its runs, and writes a store of its own: no two processes ever write to one file.
// When no task is left, the stores are merged into the experiment's, and runs that are missing then,
// because a node was lost or a limit of time ended a task, are submitted again.
//
// All state is in a folder beside the experiment's store: which job is under way, its lists of runs,
// its logs and its stores. A command that finds a job under way there watches it and submits none.
package slurm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/internal/shellword"
)

var (
	errMissing = errs.Define("slurm-missing",
		"the command {command} of Slurm cannot be started",
		"This host has no client of Slurm, or its commands are not in PATH.",
		"Start the sweep on a host from which jobs are submitted, or divide it with `heddle experiment run --shard`.")
	errRefused = errs.Define("slurm-refused",
		"Slurm refuses the job array: {text}",
		"The partition, the limit of time, the account or the number of tasks is not allowed, or the controller cannot be reached.",
		"Correct the option of `heddle experiment run --slurm` that the sentence names; the results so far are stored.")
	errLost = errs.Define("slurm-tasks-lost",
		"{count} runs have no result after {rounds} job arrays without one more; the logs of the tasks are in {folder}",
		"The tasks of the job end before they store a result: heddle, the experiment or its programs are not at the same path on the nodes, or a limit of time or memory is too low.",
		"Read a log in the folder, remove the cause, and start the same command again.")
	errFolder = errs.Define("slurm-folder",
		"cannot write to the folder {folder} of the Slurm job",
		"The folder cannot be made, or the disk is full.",
		"Make room, or name another store with `heddle experiment run --store`.")
	errState = errs.Define("slurm-state",
		"the state of an earlier Slurm job in {file} cannot be read",
		"The file was damaged, or written by another version of heddle.",
		"Look with squeue whether the job is still there, cancel it with scancel, and remove the file: results in the folder are kept.")
)

// Options are those of the job arrays.
type Options struct {
	// ArraySize bounds the tasks of an array, which share the runs; 0 means usualArray. Concurrent, unless
	// 0, bounds how many run at a time.
	ArraySize, Concurrent int
	// Partition, Time and Memory, unless empty, are Slurm's options.
	Partition, Time, Memory string
	// Workers is the number of processors of a task, and of its runs at a time; 0 means 1.
	Workers int
	// Extra are further options of sbatch, such as "--account=physics".
	Extra []string
	// Poll is the time between questions to Slurm; 0 means usualPoll.
	Poll time.Duration
	// Progress, unless nil, gets the course of each job.
	Progress Progress
	// Say prints a sentence. Ask, unless nil, asks one that a letter answers.
	Say func(format string, args ...any)
	Ask func(question string) (answer string)
}

const (
	usualArray = 256
	usualPoll  = 5 * time.Second
	// emptyRounds is how many arrays may end without a new result before the sweep gives up.
	emptyRounds = 2
	// patience bounds how often in a row squeue may fail.
	patience = 120
)

// Interrupted is the error of a sweep that was interrupted: its job continues, or was cancelled.
type Interrupted struct {
	Job       string
	Cancelled bool
}

func (i *Interrupted) Error() string {
	if i.Cancelled {
		return fmt.Sprintf("the Slurm job %s was cancelled; what its tasks have stored is kept, and the same command continues from there", i.Job)
	}
	return fmt.Sprintf("the Slurm job %s goes on; the same command watches it again, and `scancel %s` ends it", i.Job, i.Job)
}

// Is makes it a cancelled context's error, which it is.
func (i *Interrupted) Is(target error) bool { return target == context.Canceled }

// state is the content of the folder's file on the job under way.
type state struct {
	Job   string `json:"job"`
	Tasks int    `json:"tasks"`
	Round string `json:"round"` // folder of the job
}

// Sweep is the experiment that is carried out.
type Sweep interface {
	// Missing lists the numbers of the runs without a result, with or without failed ones.
	Missing(failed bool) ([]int, error)
	// Merge takes the results in stores over, and names the runs that are not equal to those there.
	Merge(stores []string) (conflicts []string, err error)
}

// Progress gets the course of a job: Start with its tasks, Done after each with a line, and Stop.
type Progress interface {
	Start(tasks, stored int)
	Done(line string, trouble bool)
	Stop()
}

// Files are the experiment's name, its file, its store, and the folder of its inputs.
type Files struct{ Name, Experiment, Store, Inputs string }

// cluster is one call of Run.
type cluster struct {
	sweep   Sweep
	files   Files
	options Options
	folder  string
}

// Run carries out the missing runs and merges the results. Runs that were not equal are returned.
func Run(ctx context.Context, sweep Sweep, files Files, options Options) (conflicts []string, err error) {
	for _, command := range []string{"sbatch", "squeue", "scancel"} {
		if _, err := exec.LookPath(command); err != nil {
			return nil, errMissing.New(command)
		}
	}
	options.ArraySize, options.Poll = cmp.Or(options.ArraySize, usualArray), cmp.Or(options.Poll, usualPoll)
	options.Workers = cmp.Or(options.Workers, 1)
	for _, path := range []*string{&files.Experiment, &files.Store, &files.Inputs} {
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, errFolder.Wrap(err, *path)
		}
	}
	c := &cluster{sweep: sweep, files: files, options: options, folder: strings.TrimSuffix(files.Store, ".sqlite") + ".slurm"}
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return nil, errFolder.Wrap(err, c.folder)
	}
	return c.carryOut(ctx)
}

// carryOut submits arrays until no run is missing that was not tried, and returns the conflicts.
func (c *cluster) carryOut(ctx context.Context) (conflicts []string, err error) {
	job, err := c.readState()
	if err != nil {
		return nil, err
	}
	empty, last := 0, -1
	for {
		if job != nil {
			if ctx, err = c.watch(ctx, job); err != nil {
				return conflicts, err
			}
		}
		more, err := c.mergeParts()
		conflicts = append(conflicts, more...)
		if err != nil {
			return conflicts, err
		}
		untried, err := c.sweep.Missing(job == nil) // failed ones of before are tried once more
		if err != nil {
			return conflicts, err
		}
		if len(untried) == 0 {
			return conflicts, c.cleanUp()
		}
		if job != nil && last >= 0 {
			if empty++; len(untried) < last {
				empty = 0
			}
			if empty >= emptyRounds {
				return conflicts, errors.Join(errLost.New(len(untried), empty, job.Round), c.forget())
			}
			c.options.Say("%d runs were lost with their tasks, and are submitted again", len(untried))
		}
		last = len(untried)
		if ctx.Err() != nil {
			return conflicts, ctx.Err()
		}
		if job, err = c.submit(untried); err != nil {
			return conflicts, err
		}
	}
}

func (c *cluster) stateFile() string { return filepath.Join(c.folder, "job.json") }

// readState returns the job under way, or nil.
func (c *cluster) readState() (*state, error) {
	text, err := os.ReadFile(c.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var s state
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return nil, errState.Wrap(err, c.stateFile())
	}
	c.options.Say("the Slurm job %s of %d tasks is under way already", s.Job, s.Tasks)
	return &s, nil
}

func (c *cluster) writeState(s state) error {
	text, err := json.Marshal(s)
	if err == nil {
		err = outfile.WriteBytes(c.stateFile(), append(text, '\n'))
	}
	if err != nil {
		return errFolder.Wrap(err, c.folder)
	}
	return nil
}

// forget makes the next command submit a new job.
func (c *cluster) forget() error {
	if err := os.Remove(c.stateFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return errFolder.Wrap(err, c.folder)
	}
	return nil
}

// cleanUp removes the folder after a merge that was the last.
func (c *cluster) cleanUp() error {
	if err := os.RemoveAll(c.folder); err != nil {
		return errFolder.Wrap(err, c.folder)
	}
	return nil
}

// submit submits an array for the runs.
func (c *cluster) submit(runs []int) (*state, error) {
	round, err := os.MkdirTemp(c.folder, "job-")
	if err != nil {
		return nil, errFolder.Wrap(err, c.folder)
	}
	tasks := min(len(runs), c.options.ArraySize, largestArray())
	lists := make([][]string, tasks)
	for i, run := range runs {
		lists[i%tasks] = append(lists[i%tasks], strconv.Itoa(run))
	}
	var text strings.Builder
	for _, list := range lists {
		text.WriteString(strings.Join(list, ",") + "\n")
	}
	script, err := c.script(round)
	if err == nil {
		err = outfile.WriteBytes(filepath.Join(round, "runs"), []byte(text.String()))
	}
	if err == nil {
		err = outfile.WriteBytes(filepath.Join(round, "task.sh"), script)
	}
	if err != nil {
		return nil, errFolder.Wrap(err, round)
	}
	job, err := c.sbatch(round, tasks)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(round))
	}
	s := &state{Job: job, Tasks: tasks, Round: round}
	if err := c.writeState(*s); err != nil {
		_ = exec.Command("scancel", job).Run()
		return nil, err
	}
	c.options.Say("the Slurm job %s has %d tasks for %d runs", job, tasks, len(runs))
	return s, nil
}

// script is the program of each task. A task that is started again has another store.
func (c *cluster) script(round string) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	q := shellword.Quote
	return fmt.Appendf(nil, `#!/bin/sh
runs=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" %s)
exec %s experiment run %s --store %s/"$SLURM_ARRAY_TASK_ID-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}.sqlite" \
	--inputs %s --workers %d --runs "$runs"
`, q(filepath.Join(round, "runs")), q(self), q(c.files.Experiment), q(round), q(c.files.Inputs), c.options.Workers), nil
}

// sbatch submits the script and returns the number of the job.
func (c *cluster) sbatch(round string, tasks int) (string, error) {
	array := fmt.Sprintf("--array=0-%d", tasks-1)
	if c.options.Concurrent > 0 {
		array += fmt.Sprintf("%%%d", c.options.Concurrent)
	}
	args := []string{
		"--parsable", array, "--job-name=heddle-" + c.files.Name, "--output=" + filepath.Join(round, "%a.log"), "--open-mode=append",
		"--requeue", fmt.Sprintf("--cpus-per-task=%d", c.options.Workers),
	}
	for _, option := range []struct{ name, value string }{{"partition", c.options.Partition}, {"time", c.options.Time}, {"mem", c.options.Memory}} {
		if option.value != "" {
			args = append(args, "--"+option.name+"="+option.value)
		}
	}
	args = append(append(args, c.options.Extra...), filepath.Join(round, "task.sh"))
	out, err := ask("sbatch", args...)
	if err != nil {
		return "", err
	}
	job, _, _ := strings.Cut(strings.TrimSpace(out), ";") // the name of the cluster may follow
	if _, err := strconv.Atoi(job); err != nil {
		return "", errRefused.New(strconv.Quote(out))
	}
	return job, nil
}

// ask executes a command of Slurm and returns its output; the error has its message.
func ask(command string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(command, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		text := strings.Join(strings.Fields(strings.ReplaceAll(stderr.String(), command+": error: ", "")), " ")
		return "", errRefused.New(cmp.Or(text, exit.String()))
	}
	if err != nil {
		return "", errMissing.Wrap(err, command)
	}
	return stdout.String(), nil
}

var arrayLimit = regexp.MustCompile(`(?m)^MaxArraySize\s*=\s*(\d+)`)

// largestArray is the number of tasks that the cluster allows an array.
func largestArray() int {
	const usual = 1000
	out, err := ask("scontrol", "show", "config")
	if err != nil {
		return usual
	}
	if m := arrayLimit.FindStringSubmatch(out); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 1 {
			return n - 1 // the limit is of the largest number of a task, plus 1
		}
	}
	return usual
}

// mergeParts merges the stores of all tasks that have ended, and removes them.
func (c *cluster) mergeParts() (conflicts []string, err error) {
	parts, err := filepath.Glob(filepath.Join(escapePattern(c.folder), "job-*", "*.sqlite"))
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	if conflicts, err = c.sweep.Merge(parts); err != nil {
		return nil, err
	}
	for _, part := range parts {
		for _, end := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(part + end); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, errFolder.Wrap(err, c.folder)
			}
		}
	}
	return conflicts, c.forget()
}

func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
