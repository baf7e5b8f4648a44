package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/experiments/servers"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/output"
)

// Point is a place in the grid: it identifies a run within its experiment.
type Point struct {
	Program   string     `json:"program"`
	Arguments []Argument `json:"arguments,omitempty"` // sorted by name
	Policy    string     `json:"policy"`
	// CoresAs is the grid's word for the cores, a number or "threads".
	CoresAs string `json:"cores_as"`
	Cores   int    `json:"cores"`
	Memory  Memory `json:"memory"`
	Threads int    `json:"threads,omitempty"` // 0 where threads are not swept
	Seed    uint64 `json:"seed"`
}

// Argument is the value of one of the grid's arguments or scheduling options.
type Argument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// String names the point in progress lines and failures.
func (p Point) String() string {
	var b strings.Builder
	b.WriteString(p.Program)
	for _, a := range p.Arguments {
		fmt.Fprintf(&b, " %s=%s", a.Name, a.Value)
	}
	if p.Threads > 0 {
		fmt.Fprintf(&b, " threads=%d", p.Threads)
	}
	fmt.Fprintf(&b, " cores=%d policy=%s%v seed=%d", p.Cores, p.Policy, p.Memory, p.Seed)
	return b.String()
}

// withoutSeed is the point without its seed: the runs of one row of a table.
func (p Point) withoutSeed() Point {
	p.Seed = 0
	return p
}

// storeSlot identifies the point in a store.
func (p Point) storeSlot() string { return digestJSON(p) }

// Run is one run of the plan.
type Run struct {
	Point Point
	Job   job.Job
	// Key identifies everything that the run depends on and that is known
	// before it: equal keys must give equal digests.
	Key string
	// NativeKey identifies the run of the same command on the host.
	NativeKey string

	place  int             // in the plan
	slot   string          // the point's place in a store
	server *servers.Server // of a program that is a server, or nil
}

// Plan is an expanded experiment: its runs in order, and where their inputs
// are.
type Plan struct {
	Experiment *Experiment
	Runs       []Run
	inputs     string // host folder with the inputs
	build      string // SHA-256 of heddle's program file
}

// Plan expands the experiment. The inputs must be in the folder; see Prepare.
func (x *Experiment) expandPlan(inputs string, digests map[string]string) (*Plan, error) {
	self, err := ownDigest()
	if err != nil {
		return nil, errSelf.Wrap(err)
	}
	plan := &Plan{Experiment: x, inputs: inputs, build: self, Runs: make([]Run, 0, int(x.Size())/x.Repetitions)}
	inWindows, err := x.windowsKey()
	if err != nil {
		return nil, err
	}
	for _, p := range x.Programs {
		name := p.program()
		program, err := findProgram(name, x.Machine)
		if err != nil {
			return nil, errProgram.New(name, err)
		}
		sum, err := fileDigest(program)
		if err != nil {
			return nil, errProgram.New(name, err)
		}
		for _, point := range x.listPoints(p) {
			run := Run{place: len(plan.Runs), Point: point, Job: x.jobAt(p, point, inputs), slot: point.storeSlot(), server: p.server}
			known := dependencies{Program: sum, Inputs: digests, Stdin: p.Stdin, Args: run.Job.Args, Env: run.Job.Options.Env, Filter: x.Filter}
			run.NativeKey = digestJSON(known)
			known.Heddle, known.UID, known.GID = self, os.Getuid(), os.Getgid()
			known.Options, known.Windows = &run.Job.Options, inWindows
			run.Key = known.digestKey()
			plan.Runs = append(plan.Runs, run)
		}
	}
	return plan, nil
}

// dependencies are the inputs of a run, as far as they are known before.
type dependencies struct {
	Heddle  string // SHA-256 of heddle's program file
	Program string // SHA-256
	Args    []string
	Env     []string
	Stdin   string            // name of an input
	Inputs  map[string]string // SHA-256 by name; JSON sorts the names
	UID     int
	GID     int
	Options *job.Options
	Filter  output.Filter `json:",omitempty"`
	Windows *windowsKey   `json:",omitempty"`
}

// digestKey leaves out where on the host the inputs are: only their contents count.
func (d dependencies) digestKey() string {
	options := *d.Options
	options.Mounts = slices.DeleteFunc(slices.Clone(options.Mounts), func(m job.Mount) bool { return m.Guest == guestDir })
	d.Options = &options
	return digestJSON(d)
}

// ownDigest is the digest of heddle's program file.
var ownDigest = sync.OnceValues(func() (string, error) { return fileDigest("/proc/self/exe") })

func digestJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("bug: a key cannot be written as JSON: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func fileDigest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// listPoints lists the grid for one program, seeds varying fastest.
func (x *Experiment) listPoints(p Program) []Point {
	cores := machineValue(x.Grid.Cores, Cores{Count: x.Machine.Cores})
	threads := []uint64{0}
	if x.usesParameter(p, "threads") {
		threads = listValues(x.Grid.Threads, 0)
	}
	var points []Point
	for _, arguments := range x.combinations(p) {
		for _, policy := range x.policies() {
			for _, options := range x.schedulingOf(p).combinations(policy) {
				at := Point{Program: p.Name, Arguments: mergeArguments(arguments, options), Policy: policy}
				points = x.appendPoints(points, at, cores, threads)
			}
		}
	}
	return points
}

// appendPoints adds the points with the program, arguments and policy of one: all cores, memory models, threads
// and seeds.
func (x *Experiment) appendPoints(points []Point, at Point, cores []Cores, threads []uint64) []Point {
	for _, c := range cores {
		for _, at.Memory = range x.gridMemories() {
			for _, t := range threads {
				at.CoresAs, at.Cores, at.Threads = c.String(), c.Count, int(t)
				if c.AsThreads {
					at.Cores = int(t)
				}
				for _, at.Seed = range listValues(x.Grid.Seeds, x.Machine.Seed) {
					points = append(points, at)
				}
			}
		}
	}
	return points
}

func machineValue[T any](list []T, otherwise T) []T {
	if len(list) == 0 {
		return []T{otherwise}
	}
	return list
}

// listValues lists the numbers of the ranges.
func listValues(ranges []Range, otherwise uint64) []uint64 {
	if len(ranges) == 0 {
		return []uint64{otherwise}
	}
	var list []uint64
	for _, r := range ranges {
		for n := r.Low; ; n++ {
			list = append(list, n)
			if n == r.High {
				break
			}
		}
	}
	return list
}

// combinations lists the values of the arguments that the program uses, the
// last by name varying fastest.
func (x *Experiment) combinations(p Program) [][]Argument {
	var names []string
	for name := range x.Grid.Arguments {
		if x.usesParameter(p, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	lists := [][]Argument{nil}
	for _, name := range names {
		lists = multiply(lists, name, x.Grid.Arguments[name])
	}
	return lists
}

// jobAt is the run of a program at a point.
func (x *Experiment) jobAt(p Program, at Point, inputs string) job.Job {
	replacements := []string{"{threads}", strconv.Itoa(at.Threads)}
	for _, a := range at.Arguments {
		replacements = append(replacements, "{"+a.Name+"}", a.Value)
	}
	replacer := strings.NewReplacer(replacements...)
	options := x.Machine
	options.Cores, options.Seed, options.Sched.Policy = at.Cores, at.Seed, at.Policy
	x.configureScheduling(p, at, &options.Sched)
	at.Memory.configure(&options.Memory)
	options.Mounts = append(slices.Clone(options.Mounts), job.Mount{Host: inputs, Guest: guestDir})
	if options.Dir == "" {
		options.Dir = guestDir
	}
	options.Env = replaceAll(replacer, options.Env)
	j := job.Job{Options: options, Args: replaceAll(replacer, p.Command), Filter: x.Filter}
	if p.server != nil {
		x.serveAt(p.server, at, &j)
	}
	if p.Stdin != "" {
		j.Stdin = filepath.Join(inputs, p.Stdin)
	}
	return j
}

func replaceAll(r *strings.Replacer, words []string) []string {
	replaced := make([]string, len(words))
	for i, word := range words {
		replaced[i] = r.Replace(word)
	}
	return replaced
}

// findProgram returns the host's file of a program (job.Options.FindProgram).
func findProgram(name string, o job.Options) (string, error) {
	file, search, exists := o.FindProgram(name)
	switch {
	case exists:
		return file, nil
	case strings.Contains(name, "/"):
		return "", form("a program that exists")
	}
	return "", form("a program in the guest's PATH (" + search + ")")
}
