package frost

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/complementary"
	racereport "github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// The verdicts on a run.
const (
	// Clean is a run in which replicas differed in nothing.
	Clean = "clean"
	// Detected is one with races, of which none was survived: the run was to detect
	// only.
	Detected = "detected"
	// Survived is one with races that continued to the program's end.
	Survived = "survived"
	// Avoided is one without races in which a failure was seen that is no data race: the epoch was
	// executed again in another interleaving, and the run continued to the program's end.
	Avoided = "avoided"
	// Failed is one whose program failed.
	Failed = "failed"
)

// Report is the result of a run under Frost.
type Report struct {
	Options Options `json:"options"`
	Verdict string  `json:"verdict"`
	// Failure is how the program failed, if it did.
	Failure string `json:"failure,omitempty"`
	// Committed counts the epochs that the run consists of, Rollbacks how often one
	// was executed again, Races those with a race, and Harmless those in which only
	// the way to the same outcome differed.
	Committed int `json:"committed"`
	Rollbacks int `json:"rollbacks"`
	Races     int `json:"races"`
	Harmless  int `json:"harmless"`
	// Parallel is the virtual time of the thread-parallel replicas that were
	// committed, All that of all replicas, in milliseconds.
	Parallel float64 `json:"parallel_ms"`
	All      float64 `json:"all_ms"`
	// Pipeline is when the last epoch would be committed in virtual time with cores
	// to spare: replicas of an epoch run beside each other, and the next epoch's
	// begin where the thread-parallel replica ends, or, if another one is committed
	// or none, when all are done. It is a model (section 3.2).
	Pipeline float64 `json:"pipeline_ms"`
	// Crowded is the same without cores to spare: all that the replicas do, on the
	// cores of the run alone, with none of them ever standing still, and not less
	// than Pipeline. Work is how much that is on one core.
	Crowded float64 `json:"crowded_ms"`
	Work    float64 `json:"work_ms"`
	Cores   int     `json:"cores"`
	// Epochs are all executions of epochs, in order.
	Epochs []*Epoch `json:"epochs"`
	// Named are the races that NameRaces found, if it was asked.
	Named *racereport.Report `json:"named_races,omitempty"`
	// PeakMemory is the largest number of bytes that the states of the thread-parallel
	// replica held at once, those of all epochs under way, with the most that the
	// others of one epoch have written.
	PeakMemory uint64          `json:"peak_memory"`
	Result     *machine.Result `json:"result"`

	failed string
}

// Epoch is one execution of an epoch.
type Epoch struct {
	Number int `json:"number"`
	// Attempt is 0, or how often the epoch was rolled back before.
	Attempt int `json:"attempt"`
	// Target is how long the epoch was to be, and Grace how long it was to continue after output. Length is the virtual time of the
	// thread-parallel replica, in milliseconds, and Begin when all replicas begin, by the model of Report.Pipeline.
	Target float64 `json:"target_ms"`
	Grace  float64 `json:"grace_ms"`
	Length float64 `json:"length_ms"`
	Begin  float64 `json:"begin_ms"`
	// Combination are the replicas' outcomes together (table 1), empty if the epoch was
	// not checked, and Bug explains it.
	Combination complementary.Combination `json:"combination,omitempty"`
	Bug         complementary.Bug         `json:"bug,omitempty"`
	Race        bool                      `json:"race"`
	Harmless    bool                      `json:"harmless,omitempty"`
	// Differs lists the differences of outcomes.
	Differs []string `json:"differs,omitempty"`
	// Reads says which thread has not read the same in two replicas that are alike, if
	// that was compared.
	Reads string `json:"reads,omitempty"`
	// Commit is the replica that was chosen, "vote", "rollback", or "failed".
	Commit    string              `json:"commit,omitempty"`
	Committed bool                `json:"committed"`
	Order     complementary.Order `json:"order,omitempty"`
	Replicas  []Replica           `json:"replicas"`
}

// Replica is one of an epoch's replicas, the thread-parallel one first.
type Replica struct {
	Failed       string  `json:"failed,omitempty"`
	Diverged     string  `json:"diverged,omitempty"`
	Benign       string  `json:"benign_divergence,omitempty"`
	Instructions uint64  `json:"instructions"`
	Milliseconds float64 `json:"ms"`
	// Work is for how long its cores did not stand still, together, in milliseconds.
	Work float64 `json:"work_ms"`
	// Pages is how many pages an epoch-parallel replica has written.
	Pages uint64 `json:"pages,omitempty"`
	// Output is how many bytes it has written to standard output and error.
	Output int `json:"output_bytes,omitempty"`
}

// sumUpEpochs sums the epochs up.
func (r *Report) sumUpEpochs() {
	pages := uint64(0)
	for _, e := range r.Epochs {
		pages = max(pages, e.countPages())
		if e.Committed {
			r.Committed++
			r.Parallel += e.Length
		} else {
			r.Rollbacks++
		}
		if e.Race {
			r.Races++
		}
		if e.Harmless {
			r.Harmless++
		}
		for i := range e.Replicas {
			r.All += e.Replicas[i].Milliseconds
			r.Work += e.Replicas[i].Work
		}
	}
	r.PeakMemory += pages * arch.PageSize
	r.summaryLine()
	r.Crowded = max(r.Pipeline, r.Work/float64(max(r.Cores, 1)))
	r.Failure = r.failed
	switch {
	case r.failed != "":
		r.Verdict = Failed
	case r.Races == 0 && r.hasAvoidedFailure():
		r.Verdict = Avoided
	case r.Races == 0:
		r.Verdict = Clean
	case r.Options.DetectOnly:
		r.Verdict = Detected
	default:
		r.Verdict = Survived
	}
}

// countPages is how many pages the epoch-parallel replicas have written.
func (e *Epoch) countPages() (n uint64) {
	for i := range e.Replicas {
		n += e.Replicas[i].Pages
	}
	return n
}

// summaryLine puts the epochs on a time line.
func (r *Report) summaryLine() {
	begin := 0.0
	for _, e := range r.Epochs {
		e.Begin = begin
		done := begin
		for i := range e.Replicas {
			done = max(done, begin+e.Replicas[i].Milliseconds)
		}
		r.Pipeline = max(r.Pipeline, done)
		begin += e.Length
		if !e.continuation() {
			begin = r.Pipeline
		}
	}
}

// continuation reports whether the thread-parallel replica is committed, so that the execution
// ahead from its end is right.
func (e *Epoch) continuation() bool {
	return e.Commit == "" || e.Commit == complementary.ThreadParallel.String()
}

// hasAvoidedFailure reports whether an epoch failed in all replicas, and did not when it was
// executed again: its order of synchronization decides about the failure.
func (r *Report) hasAvoidedFailure() bool {
	return slices.ContainsFunc(r.Epochs, func(e *Epoch) bool { return e.Bug == complementary.NonRace })
}

// epochsWithFindings lists the executions of epochs with a race, harmless or not, or another failure.
func (r *Report) epochsWithFindings() (list []*Epoch) {
	for _, e := range r.Epochs {
		if e.Race || e.Harmless || e.Bug == complementary.NonRace {
			list = append(list, e)
		}
	}
	return list
}

// Combinations lists the combinations of the epochs with races, as table 1 writes them.
func (r *Report) Combinations() (list []complementary.Combination) {
	for _, e := range r.Epochs {
		if e.Race || e.Bug == complementary.NonRace {
			list = append(list, e.Combination.Canonical())
		}
	}
	return list
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// mostDescribed bounds the epochs that WriteText describes.
const mostDescribed = 50

// WriteText writes the report for people: what was found, and the first epochs with a race or another
// failure.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: epochs %d, rolled back %d, with a race %d", r.Verdict, r.Committed, r.Rollbacks, r.Races)
	if r.Harmless > 0 {
		fmt.Fprintf(&b, ", with a harmless one %d", r.Harmless)
	}
	if r.Failure != "" {
		fmt.Fprintf(&b, "; the program fails: %s", r.Failure)
	}
	b.WriteByte('\n')
	fmt.Fprintf(&b, "virtual time: %.3f ms with cores to spare, %.3f ms without\n", r.Pipeline, r.Crowded)
	found := r.epochsWithFindings()
	for _, e := range found[:min(len(found), mostDescribed)] {
		e.writeLines(&b)
	}
	if more := len(found) - mostDescribed; more > 0 {
		fmt.Fprintf(&b, "%d more epochs with findings: see the report of --report\n", more)
	}
	if _, err := io.WriteString(w, b.String()); err != nil || r.Named == nil {
		return err
	}
	return r.Named.Text(w)
}

func (e *Epoch) writeLines(b *strings.Builder) {
	fmt.Fprintf(b, "epoch %d", e.Number)
	if e.Attempt > 0 {
		fmt.Fprintf(b, " (again, %d)", e.Attempt)
	}
	fmt.Fprintf(b, ": %s, %s", e.Combination, e.Bug)
	if e.Harmless {
		b.WriteString(", a race without effect")
	}
	if e.Commit != "" {
		fmt.Fprintf(b, ": %s", e.Commit)
	}
	b.WriteByte('\n')
	for i := range e.Replicas {
		x := &e.Replicas[i]
		for _, s := range []struct{ fault, found string }{{"fails", x.Failed}, {"diverges", x.Diverged}} {
			if s.found != "" {
				fmt.Fprintf(b, "  the %s replica %s: %s\n", complementary.Replica(i), s.fault, s.found)
			}
		}
	}
	if e.Reads != "" {
		fmt.Fprintf(b, "  %s\n", e.Reads)
	}
	for _, s := range e.Differs {
		fmt.Fprintf(b, "  outcomes differ in %s\n", s)
	}
}
