package report

import (
	"slices"
	"strings"
)

// Prediction counts how races were predicted: see package analyses/predict.
type Prediction struct {
	// Accesses are those of the run that were examined, all unless Cut, and Events the operations
	// and the accesses to memory that several threads use.
	Accesses uint64 `json:"accesses"`
	Events   int    `json:"events"`
	Cut      bool   `json:"cut"`
	// Pairs are the pairs of instructions that conflict, and Predicted those of them with a
	// sync-preserving race.
	Pairs     int `json:"pairs"`
	Predicted int `json:"predicted"`
	// Known of these the run itself has, or the run of another witness; Confirmed are in the report,
	// Library are confirmed within run-time libraries, Refuted did not happen in the runs of their witnesses, and
	// NotRun were left by a bound.
	Known     int `json:"known"`
	Confirmed int `json:"confirmed"`
	Library   int `json:"library"`
	Refuted   int `json:"refuted"`
	NotRun    int `json:"not_run"`
	// Omitted are pairs that were not examined at all places, and Unfinished the ones that the bound of the
	// search left.
	Omitted    int `json:"omitted"`
	Unfinished int `json:"unfinished"`
}

// Witness is how a predicted race was seen.
type Witness struct {
	// Command shows it; empty: its witness was not kept.
	Command string `json:"command,omitempty"`
}

// AddPredicted adds a race of the run of a witness, with the command that shows it.
func (r *Report) AddPredicted(from *Report, race *Race, command string) {
	race.Witness = &Witness{command}
	renumber := func(n int) int { return r.threadNamed(from, n) }
	for _, n := range []*int{&race.First.Thread, &race.Second.Thread, &race.At.Thread} {
		*n = renumber(*n)
	}
	for _, s := range []*Site{race.At.Made, race.At.Freed} {
		if s != nil {
			s.Thread = renumber(s.Thread)
		}
	}
	r.Races = append(r.Races, race)
}

// threadNamed returns the number of the thread of the same name as one of another report; one that this
// report lacks is added.
func (r *Report) threadNamed(from *Report, n int) int {
	of := from.Threads[n]
	for i := range r.Threads {
		if r.Threads[i].Name == of.Name {
			if len(r.Threads[i].Created) == 0 {
				r.Threads[i].Created = of.Created
			}
			return i
		}
	}
	if of.Parent >= 0 {
		of.Parent = r.threadNamed(from, of.Parent)
	}
	of.Number = len(r.Threads)
	r.Threads = append(r.Threads, of)
	return of.Number
}

// NotePrediction completes the report after the predicted races were added. Of the run's own races only the
// first are described, unless limit is 0.
func (r *Report) NotePrediction(p Prediction, limit int) {
	r.Prediction = &p
	if own := len(r.Races) - p.Confirmed; limit > 0 && own > limit {
		r.Races = slices.Delete(r.Races, limit, own)
	}
	r.Locations = []Location{}
	r.noteLocations()
	if command, ok := strings.CutPrefix(r.Another, racesCommand); ok {
		r.Another = racesCommand + " --predict" + command
	}
}

// Confirmed is the number of predicted races in the report.
func (r *Report) Confirmed() int {
	if r.Prediction == nil {
		return 0
	}
	return r.Prediction.Confirmed
}

// prediction prints the counts of a prediction.
func (w *printer) prediction() {
	p := w.r.Prediction
	if p == nil {
		return
	}
	w.line("predicted: %s, each of which happened when the program was run in another order", number(uint64(p.Confirmed), "race"))
	w.line("examined: %s of synchronization or accesses to memory that several threads use; of %s of instructions that conflict %d race in orders that preserve the synchronization, %d of them in this order, too",
		number(uint64(p.Events), "event"), number(uint64(p.Pairs), "pair"), p.Predicted, p.Known)
	if p.Refuted > 0 {
		w.line("left out: %s that did not happen in the runs of their witnesses", number(uint64(p.Refuted), "predicted race"))
	}
	if p.Library > 0 {
		w.line("left out: %s within run-time libraries (--library shows them)", number(uint64(p.Library), "predicted race"))
	}
	if p.Cut {
		w.line("the run has more than the first %s, which were examined", number(p.Accesses, "access"))
	}
	if p.NotRun > 0 {
		w.line("not run: witnesses of %s more", number(uint64(p.NotRun), "pair"))
	}
	if p.Omitted+p.Unfinished > 0 {
		w.line("not examined at all places: %s of instructions", number(uint64(p.Omitted+p.Unfinished), "pair"))
	}
	seen := 0
	for _, race := range w.r.Races {
		if race.Witness != nil && race.Witness.Command == "" {
			seen++
		}
	}
	if seen > 0 {
		w.line("to keep the witnesses, and the commands that show them: --witness DIR")
	}
}
