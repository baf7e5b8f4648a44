package h3

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/infile"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/sched/guided"
)

var (
	errScheduleFile = errs.Define("reproduce-schedule-file",
		"cannot read the schedule {file}",
		"The file is missing, or may not be read.",
		"Name a file that heddle reproduce -o has written.")
	errScheduleDamaged = errs.Define("reproduce-schedule-damaged",
		"the schedule {file} is damaged: {problem}",
		"The file was changed, or is not one that heddle reproduce has written.",
		"Make it again with heddle reproduce.")
	errScheduleOther = errs.Define("reproduce-schedule-of-another-run",
		"the schedule {file} is for another program or other inputs than the trace: {found}, not {expected}",
		"A schedule can be followed with the program and the inputs that it was computed for.",
		"Name the trace that the schedule was computed from.")
)

// firstLine begins the file of a schedule; a last line has the checksum of the lines between them.
const firstLine = "heddle reproduction 1\n"

// Schedule is the content of a schedule file.
type Schedule struct {
	// Args and Inputs are the program, and the files that it read.
	Args    []string        `json:"args"`
	Inputs  []machine.Input `json:"inputs"`
	Model   string          `json:"model"`
	Failure machine.Failure `json:"failure"`
	Plan    *guided.Plan    `json:"plan"`
}

// Schedule is the outcome's, for a file.
func (r *Recording) Schedule(out *Outcome) (*Schedule, error) {
	c, err := r.replay.Config()
	return &Schedule{
		Args: c.Args, Inputs: r.replay.Recorded().Inputs, Model: modelName(out), Failure: out.Failure, Plan: out.Plan,
	}, err
}

func modelName(out *Outcome) string { return [...]string{"sc", "tso", "pso"}[out.Model] }

// WriteFile writes a schedule.
func (s *Schedule) WriteFile(file string) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return outfile.WriteBytes(file, sealText(append(text, '\n')))
}

// sealText puts the first and the last line around the text of a schedule.
func sealText(text []byte) []byte {
	out := append([]byte(firstLine), text...)
	return fmt.Appendf(out, "end %016x\n", xxh3.Hash(text))
}

// ReadFile reads a schedule.
func ReadFile(file string) (*Schedule, error) {
	text, err := infile.ReadStarting(file, firstLine)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, errScheduleFile.Wrap(err, file)
	}
	return parseSchedule(file, []byte(text))
}

// parseSchedule reads the content of a schedule's file, whose name is for errors.
func parseSchedule(file string, b []byte) (*Schedule, error) {
	text, ok := bytes.CutPrefix(b, []byte(firstLine))
	end := bytes.LastIndex(text, []byte("end "))
	if !ok || end < 0 {
		return nil, errScheduleDamaged.New(file, "its first or last line is missing")
	}
	if want := fmt.Sprintf("end %016x\n", xxh3.Hash(text[:end])); string(text[end:]) != want {
		return nil, errScheduleDamaged.New(file, "its checksum is wrong")
	}
	s := &Schedule{}
	if json.Unmarshal(text[:end], s) != nil || s.Plan == nil {
		return nil, errScheduleDamaged.New(file, "it has no plan")
	}
	return s, nil
}

// Config is the configuration of a run under the schedule, of the program and the inputs of a
// trace; the guide reports how the run followed it.
func (s *Schedule) Config(r *machine.Replay, file string) (machine.Config, []machine.Option, *guided.Guide, error) {
	g := guided.New(s.Plan)
	c, options, err := guidedConfig(r, g, s.Model)
	if err != nil {
		return c, nil, nil, err
	}
	if !slices.Equal(c.Args, s.Args) {
		return c, nil, nil, errScheduleOther.New(file, fmt.Sprintf("%q", c.Args), fmt.Sprintf("%q", s.Args))
	}
	if recorded := r.Recorded(); recorded != nil && !slices.Equal(recorded.Inputs, s.Inputs) {
		return c, nil, nil, errScheduleOther.New(file, "other contents of the files that were read", "those of the schedule")
	}
	return c, options, g, nil
}
