package find

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/memmodel"
)

// Output is a standard output with which schedules ended.
type Output struct {
	// Text is its beginning, Bytes its length.
	Text  string
	Bytes int
	// First is the number of the first schedule with it, from 1 on, Kind that schedule's kind, and Schedules the number
	// of all that ended with it.
	First     int
	Kind      Kind
	Schedules int
}

func (o Output) String() string {
	text := strconv.Quote(o.Text)
	if o.Bytes > len(o.Text) {
		text += fmt.Sprintf("... (%d bytes)", o.Bytes)
	}
	return text
}

const (
	// outputText is the number of bytes of an output that reports have.
	outputText = 60
	// outputsKept is the number of different outputs that are told apart, and keptText that of the bytes that
	// are kept of each.
	outputsKept = 8
	keptText    = 1 << 16
)

// printed is the standard output of a run: its hash and its beginning.
type printed struct {
	sum   [sha256.Size]byte
	text  string
	bytes int
}

func newPrinted(stdout []byte) printed {
	return printed{sha256.Sum256(stdout), string(stdout[:min(len(stdout), keptText)]), len(stdout)}
}

// isWhole reports whether all of the output is kept.
func (p printed) isWhole() bool { return p.bytes == len(p.text) }

func (p printed) output(n int, kind Kind) Output {
	return Output{Text: p.text[:min(len(p.text), outputText)], Bytes: p.bytes, First: n + 1, Kind: kind, Schedules: 1}
}

// outputs decides which outputs are wrong. With an expected output others are. Otherwise the schedules without
// preemption under SC are the specification, as in Burckhardt, Dern, Musuvathi, Tan, Line-Up: A complete and
// automatic linearizability checker (PLDI 2010): if all of these print one output, another one is wrong. If
// they print several, the output depends on the order of threads: then an output under a weaker memory
// model is wrong that no schedule under SC prints, where these print few different ones.
type outputs struct {
	expect     []byte
	native     bool // expect is the output of the program on the host
	any        bool
	serialRuns int
	serial     []printed                 // different outputs of the schedules without preemption
	reference  *printed                  // the only one of them
	underSC    map[[sha256.Size]byte]int // schedules with each output
	texts      []printed                 // outputs under SC, up to outputsKept
	runsSC     int
	examined   bool                      // as many schedules as needed were executed under SC
	known      map[[sha256.Size]byte]int // places in the report's outputs
}

// Numbers of schedules by which outputs are judged.
const (
	// mostSerial is the number of schedules without preemption; they have at most serialInstructions
	// altogether, and judge outputs if there are leastSerial or more.
	mostSerial         = 16
	leastSerial        = 4
	serialInstructions = 400_000_000
	// examinedSC is the number of schedules under SC that an output must not be printed by, and
	// mostUnique how many outputs may be printed by one of them alone.
	examinedSC      = 1000
	mostUnique      = 2
	mostExaminedAll = 20_000_000_000
)

// chooseSerial sets the number of schedules without preemption of a program, by its length in instructions.
func (o *outputs) chooseSerial(length uint64) {
	o.underSC, o.known = map[[sha256.Size]byte]int{}, map[[sha256.Size]byte]int{}
	if o.any || o.expect != nil {
		return
	}
	o.serialRuns = min(mostSerial, 1+int(serialInstructions/(1+length)))
}

// isWrong reports whether an output is known to be wrong. Workers call it.
func (o *outputs) isWrong(stdout []byte) bool {
	switch {
	case o.expect != nil:
		return !bytes.Equal(stdout, o.expect)
	case o.reference != nil:
		return sha256.Sum256(stdout) != o.reference.sum
	}
	return false
}

// judges reports whether outputs are compared with those of other schedules.
func (o *outputs) judges() bool {
	return o.expect == nil && !o.any && o.serialRuns >= leastSerial
}

// note counts the output of a schedule that ended without a failure. Schedules are noted in order.
func (o *outputs) note(x *schedule, p printed) {
	if x.kind.Model == memmodel.SC {
		o.runsSC++
		o.underSC[p.sum]++
		if o.underSC[p.sum] == 1 && len(o.texts) < outputsKept {
			o.texts = append(o.texts, p)
		}
	}
	if x.number >= o.serialRuns || x.number < 0 {
		return
	}
	if o.underSC[p.sum] == 1 {
		o.serial = append(o.serial, p)
	}
	if x.number == o.serialRuns-1 && len(o.serial) == 1 && o.judges() {
		o.reference = &o.serial[0]
	}
}

// noteOutput counts an output for the report.
func (s *search) noteOutput(x *schedule, p printed) {
	s.outputs.note(x, p)
	at, known := s.outputs.known[p.sum]
	switch {
	case known:
		s.report.Outputs[at].Schedules++
	case len(s.report.Outputs) == outputsKept:
		s.report.OtherOutputs++
	default:
		s.outputs.known[p.sum] = len(s.report.Outputs)
		s.report.Outputs = append(s.report.Outputs, p.output(x.number, x.kind))
	}
}

// isOfWeakModel reports whether an output is one that SC does not have.
func (s *search) isOfWeakModel(ctx context.Context, x *schedule, p printed) (bool, error) {
	o := &s.outputs
	if !o.judges() || x.kind.Model == memmodel.SC || o.reference != nil || o.underSC[p.sum] > 0 || len(o.underSC) > outputsKept {
		return false, nil
	}
	if !o.examined {
		if examinedSC*s.length > mostExaminedAll {
			return false, nil
		}
		if err := s.examineSC(ctx); err != nil {
			return false, err
		}
	}
	unique := 0
	for _, runs := range o.underSC {
		if runs == 1 {
			unique++
		}
	}
	return o.underSC[p.sum] == 0 && len(o.underSC) <= outputsKept && unique <= mostUnique, nil
}

// examineSC executes schedules under SC for their outputs, unless these are too many to be compared with.
func (s *search) examineSC(ctx context.Context) error {
	for n := 0; n < examinedSC && len(s.outputs.underSC) <= outputsKept; n += mostBatch {
		var list []*schedule
		for i := n; i < min(n+mostBatch, examinedSC); i++ {
			seed := rand.Mix(s.seedBase() ^ uint64(i) ^ examineSeeds)
			list = append(list, s.scheduleOf(-1, s.planner.kindInTurn(i, []memmodel.Model{memmodel.SC}), seed))
		}
		results, err := s.runBatch(ctx, list, true)
		if err != nil {
			return err
		}
		for i, x := range results {
			if !x.failed {
				s.outputs.note(list[i], x.printed)
			}
		}
	}
	s.outputs.examined = true
	return nil
}

// examineSeeds sets the seeds of examined schedules apart from those of others.
const examineSeeds = 1 << 62

// wrongOutput is the failure of a run with a wrong output.
var wrongOutput = machine.Failure{Class: machine.FailureWrong, Text: "standard output"}

// rights lists the outputs that are no failures, for a search among outputs; nil: all are right, or their
// list is not known.
func (o *outputs) rights() (list [][]byte) {
	switch {
	case o.expect != nil:
		return [][]byte{o.expect}
	case o.reference != nil && o.reference.isWhole():
		return [][]byte{[]byte(o.reference.text)}
	case o.reference != nil:
		return nil
	}
	for _, p := range o.texts {
		if !p.isWhole() {
			return nil
		}
		list = append(list, []byte(p.text))
	}
	return list
}

// explain says why an output is wrong.
func (o *outputs) explain() string {
	switch {
	case o.expect != nil:
		of := "the expected output"
		if o.native {
			of = "the output of two native runs"
		}
		return of + " is " + newPrinted(o.expect).output(0, Kind{}).String()
	case o.reference != nil:
		return fmt.Sprintf("all %d schedules without preemption print %v", o.serialRuns, o.reference.output(0, Kind{}))
	}
	text := fmt.Sprintf("none of %d schedules under sc prints it; they print ", o.runsSC)
	for i, p := range o.texts {
		if i > 0 {
			text += ", "
		}
		text += p.output(0, Kind{}).String()
	}
	return text
}

// outputLines describes the outputs, if they differ and none of them is known to be wrong.
func (r *Report) outputLines() (lines []string) {
	if len(r.Outputs) < 2 {
		return nil
	}
	lines = append(lines, "outputs differ; with --expect FILE a run whose output is not FILE's is a failure:")
	for _, o := range r.Outputs {
		lines = append(lines, fmt.Sprintf("  %v: %d schedules, the first %d (%v)", o, o.Schedules, o.First, o.Kind))
	}
	if r.OtherOutputs > 0 {
		lines = append(lines, fmt.Sprintf("  others: %d schedules", r.OtherOutputs))
	}
	return lines
}
