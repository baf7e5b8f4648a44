package windows

import (
	"encoding/json"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched/windows"
)

var errRecorded = errs.Define("windows-not-repeatable",
	"the windows of the recorded run {file} cannot be repeated: {problem}",
	"The trace has a description of windows that this version of heddle does not know, or is damaged.",
	"Replay it with the version of heddle that has recorded it.")

// description is the windows of a recorded run, as its trace has them.
type description struct {
	Parameters Parameters `json:"parameters"`
	// Schedules are the stored ones at the begin of the run.
	Schedules string `json:"schedules"`
}

// NewRecorded is New for a run that is recorded: its trace gets all that repeats the windows.
func NewRecorded(c *machine.Config, p Parameters, store *windows.Store) (*Driver, error) {
	text, err := json.Marshal(description{p, string(storeText(store))})
	if err != nil {
		return nil, err
	}
	c.Service = text
	return New(c, p, store), nil
}

// Repeat makes the windows of a run that repeats the recorded one of a trace, whose configuration is given; nil if that run is
// not in windows.
func Repeat(c *machine.Config, path string) (*Driver, error) {
	if c.Service == nil {
		return nil, nil
	}
	var x description
	if err := json.Unmarshal(c.Service, &x); err != nil {
		return nil, errRecorded.New(path, err.Error())
	}
	store := windows.NewStore()
	if problem := readStore([]byte(x.Schedules), store); problem != "" {
		return nil, errRecorded.New(path, problem)
	}
	env := c.Env // it is that of the recorded run already
	d := New(c, x.Parameters, store)
	c.Env = env
	return d, nil
}
