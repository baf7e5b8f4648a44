package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// measure runs the table's commands.
func (t *table) measure(ctx context.Context, root string) (rows [][]string, err error) {
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	// Not in /tmp, of which guests have their own.
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Join(root, "bin"), "measured-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if t.Prepare != "" {
		if _, _, err := runShell(ctx, root, dir, t.Prepare); err != nil {
			return nil, err
		}
	}
	for i := range t.Rows {
		more, err := t.Rows[i].measure(ctx, root, dir)
		if err != nil {
			return nil, err
		}
		for _, cells := range more {
			if len(cells) != len(t.Head) {
				return nil, fmt.Errorf("%q has %d cells, the head %d", cells, len(cells), len(t.Head))
			}
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func (r *row) measure(ctx context.Context, root, dir string) (rows [][]string, err error) {
	if r.Run == "" {
		return [][]string{r.Cells}, nil
	}
	pattern, err := regexp.Compile("(?m)" + r.Pattern)
	if err != nil {
		return nil, err
	}
	out, values, err := runShell(ctx, root, dir, r.Run)
	if err != nil {
		return nil, err
	}
	if r.Pattern == "" {
		return [][]string{fill(r.Cells, values)}, nil
	}
	for _, found := range pattern.FindAllSubmatch(out, -1) {
		for i, name := range pattern.SubexpNames() {
			values[name] = string(found[i])
		}
		rows = append(rows, fill(r.Cells, values))
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("the output of %s has no %s:\n%s", r.Run, r.Pattern, out)
	}
	return rows, nil
}

// fill replaces the names in braces of cells.
func fill(cells []string, values map[string]string) []string {
	var pairs []string
	for name, value := range values {
		if name != "" {
			pairs = append(pairs, "{"+name+"}", strings.TrimSpace(value))
		}
	}
	replace := strings.NewReplacer(pairs...)
	filled := make([]string, len(cells))
	for i, cell := range cells {
		filled[i] = replace.Replace(cell)
	}
	return filled
}

// runShell runs a command, and returns its output and the values processor and memory.
func runShell(ctx context.Context, root, dir, command string) (out []byte, values map[string]string, err error) {
	c := exec.CommandContext(ctx, "sh", "-c", command)
	c.Dir = root
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that an interruption ends what the command has started
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.Env = append(os.Environ(), "TMP="+dir, "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	out, err = c.CombinedOutput()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w\n%s", command, err, bytes.TrimSpace(out))
	}
	usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return nil, nil, errors.New("this host does not count processor time")
	}
	seconds := (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	return out, map[string]string{
		"processor": fmt.Sprintf("%.1f", seconds),
		"memory":    fmt.Sprintf("%.1f", float64(usage.Maxrss)/(1<<20)),
	}, nil
}
