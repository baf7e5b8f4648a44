package sweep

import (
	"encoding/json"
	"io"

	"github.com/heddle-dmt/heddle/experiments/sweep/store"
)

// Listing is the plan of an experiment for other programs.
type Listing struct {
	Experiment string `json:"experiment"`
	File       string `json:"file"`
	Store      string `json:"store"`
	// Total counts all runs, Stored those with a result that still holds; only the others are
	// listed where Missing was asked for.
	Total  int         `json:"total"`
	Stored int         `json:"stored"`
	Runs   []ListedRun `json:"runs"`
}

// ListedRun is one run of a Listing.
type ListedRun struct {
	// Number is the run's in the plan, from 1: by which Options.Runs chooses.
	Number     int `json:"run"`
	Repetition int `json:"repetition"`
	Point
	// Command is the program with its arguments.
	Command []string `json:"command"`
	// Key identifies all that the run depends on: equal keys give equal results.
	Key    string `json:"key"`
	Stored bool   `json:"stored"`
}

// List lists the runs of the plan, or the ones that are missing in the store. Nothing is written
// but the inputs.
func (x *Experiment) List(o Options, missingOnly bool) (Listing, error) {
	plan, states, err := x.readStates(o)
	if err != nil {
		return Listing{}, err
	}
	list := Listing{Experiment: x.Name, File: x.path, Store: x.StorePath(o), Runs: []ListedRun{}}
	chosen := plan.choose(o)
	for i, state := range states {
		if chosen != nil && !chosen[i+1] {
			continue
		}
		list.Total++
		if state.stored {
			list.Stored++
			if missingOnly {
				continue
			}
		}
		run := plan.Runs[i/x.Repetitions]
		list.Runs = append(list.Runs, ListedRun{
			Number: i + 1, Repetition: i%x.Repetitions + 1, Point: run.Point, Command: run.Job.Args, Key: run.Key, Stored: state.stored,
		})
	}
	return list, nil
}

// readStates reads the states of all runs.
func (x *Experiment) readStates(o Options) (*Plan, []runState, error) {
	plan, err := x.Plan(o)
	if err != nil {
		return nil, nil, err
	}
	results, err := store.OpenSnapshot(x.StorePath(o))
	if store.IsMissing(err) {
		return plan, make([]runState, len(plan.Runs)*x.Repetitions), nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer results.Close()
	s := &sweep{plan: plan, store: results, readOnly: true}
	states, err := s.readStore()
	return plan, states, err
}

// Missing lists the numbers of the runs without a result, shuffled as shards are, with or without failed
// ones.
func (x *Experiment) Missing(o Options, failed bool) (numbers []int, err error) {
	plan, states, err := x.readStates(o)
	if err != nil {
		return nil, err
	}
	for _, number := range plan.shuffled() {
		if state := states[number-1]; !state.stored && (failed || state.failure == "") {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}

// WriteJSON writes the listing as JSON, with a line for each run.
func (l Listing) WriteJSON(w io.Writer) error {
	runs := l.Runs
	l.Runs = nil
	head, err := json.Marshal(l)
	if err != nil {
		return err
	}
	text := append(head[:len(head)-len("null}")], '[')
	for i, run := range runs {
		line, err := json.Marshal(run)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, '\n'), line...)
	}
	_, err = w.Write(append(text, "\n]}\n"...))
	return err
}
