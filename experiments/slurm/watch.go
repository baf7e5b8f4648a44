package slurm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

// queue counts the tasks of a job that have not ended.
type queue struct {
	running, waiting int
	reason           string // why the first waits
}

// askQueue asks squeue. A job that it does not know any more has ended.
func askQueue(job string) (q queue, err error) {
	out, err := ask("squeue", "--noheader", "--array", "--jobs="+job, "--format=%T %r")
	if err != nil {
		if strings.Contains(err.Error(), "Invalid job id") {
			return queue{}, nil
		}
		return q, err
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		state, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case state == "":
		case strings.HasPrefix(state, "RUN"), strings.HasPrefix(state, "COMPLETING"), strings.HasPrefix(state, "CONF"):
			q.running++
		default:
			q.waiting++
			if q.reason == "" {
				q.reason = reason
			}
		}
	}
	return q, nil
}

// watch waits until no task of the job is left, and reports its course. It returns the context that the
// next Ctrl-C cancels.
func (c *cluster) watch(ctx context.Context, job *state) (context.Context, error) {
	c.start(job.Tasks)
	defer c.stop()
	done, failures, said := 0, 0, ""
	for {
		q, err := askQueue(job.Job)
		if err != nil {
			if failures++; failures == 1 {
				c.options.Say("squeue does not answer, and is asked again: %v", err)
			}
			if failures > patience {
				return ctx, err
			}
		} else {
			failures = 0
			for ; done < job.Tasks-q.running-q.waiting; done++ {
				c.done(fmt.Sprintf("tasks of the Slurm job %s: %d of %d have ended, %d run", job.Job, done+1, job.Tasks, q.running))
			}
			if q.running+q.waiting == 0 {
				c.reportEnds(job)
				return ctx, nil
			}
			if q.running == 0 && q.reason != said && q.reason != "None" {
				said = q.reason
				c.options.Say("no task of the Slurm job %s runs; squeue's reason: %s", job.Job, said)
			}
		}
		select {
		case <-ctx.Done():
			var again bool
			if ctx, again, err = c.interrupted(job); !again {
				return ctx, err
			}
		case <-time.After(c.options.Poll):
		}
	}
}

func (c *cluster) start(tasks int) {
	if c.options.Progress != nil {
		c.options.Progress.Start(tasks, 0)
	}
}

func (c *cluster) stop() {
	if c.options.Progress != nil {
		c.options.Progress.Stop()
	}
}

func (c *cluster) done(line string) {
	if c.options.Progress != nil {
		c.options.Progress.Done(line, false)
	}
}

// interrupted asks whether the job is to continue. It returns a context that the next Ctrl-C cancels, if the
// job is to be watched further.
func (c *cluster) interrupted(job *state) (context.Context, bool, error) {
	answer := "l"
	if c.options.Ask != nil {
		answer = c.options.Ask(fmt.Sprintf("the Slurm job %s has tasks left: cancel it (c), leave it running and end here (l), or watch it further (w)? ", job.Job))
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "w":
		ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
		return ctx, true, nil
	case "c":
		if out, err := exec.Command("scancel", job.Job).CombinedOutput(); err != nil {
			return nil, false, errRefused.New(strings.TrimSpace(string(out)))
		}
		c.awaitEnd(job)
		_, err := c.mergeParts()
		if err == nil {
			err = c.forget()
		}
		if err != nil {
			return nil, false, err
		}
		return nil, false, &Interrupted{Job: job.Job, Cancelled: true}
	}
	return nil, false, &Interrupted{Job: job.Job}
}

// awaitEnd waits for the tasks of a cancelled job, up to a minute: Slurm gives them time to end.
func (c *cluster) awaitEnd(job *state) {
	for range 60 {
		if q, err := askQueue(job.Job); err == nil && q.running+q.waiting == 0 {
			return
		}
		time.Sleep(time.Second)
	}
}

// reportEnds counts how the tasks ended, where there is accounting.
func (c *cluster) reportEnds(job *state) {
	out, err := ask("sacct", "--noheader", "--allocations", "--parsable2", "--jobs="+job.Job, "--format=State")
	if err != nil {
		return
	}
	counts := map[string]int{}
	for _, line := range strings.Fields(out) {
		counts[line]++
	}
	for _, end := range []string{"FAILED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "PREEMPTED"} {
		if n := counts[end]; n > 0 {
			c.options.Say("%d tasks of the Slurm job %s ended as %s", n, job.Job, end)
		}
	}
}
