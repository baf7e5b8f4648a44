package find

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/sched/points"
)

// A run hangs that has more than hangFactor times the instructions or points of earlier runs, and
// some more. Its end is fair before, after hangFactor times those of the shortest of the earlier runs: others may have
// waited in loops for many rounds.
const (
	hangFactor       = 20
	hangInstructions = 3_000_000
	hangPoints       = 60_000
	fairInstructions = 300_000
	fairPoints       = 3_000
)

// runUndisturbed runs the program once under the policy of the configuration. It reports whether the
// search is over, because that run fails.
func (s *search) runUndisturbed(ctx context.Context) (done bool, err error) {
	if err := s.expectNative(ctx); err != nil {
		return false, err
	}
	c := s.configFor(memmodel.SC)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	r, err := machine.Run(ctx, c, machine.Isolated(), machine.WithoutHashes())
	if err != nil {
		return false, err
	}
	switch r.Outcome {
	case machine.OutcomeStopped:
		return false, errStopped.New(r.Message)
	case machine.OutcomeInterrupted, machine.OutcomeTimeLimit:
		s.report.Unended, s.report.Threads = r.Instructions, r.Threads
		return false, context.Cause(ctx)
	case machine.OutcomeExit:
		s.report.Accepted = r.ExitCode
		if err := s.checkNativeStatus(r.ExitCode); err != nil {
			return false, err
		}
	}
	s.report.Threads, s.digest = r.Threads, r.Digest
	s.undisturbed = r.Instructions
	s.limits.limit(1<<62, hangFactor*r.Instructions+hangInstructions)
	failure, failed := failureOfResult(r, stderr.Bytes())
	switch {
	case r.Outcome != machine.OutcomeExit:
	case isPanic(r.ExitCode, stderr.Bytes()):
		s.report.Accepted = 0
	default:
		failure, failed = wrongOutput, s.outputs.isWrong(stdout.Bytes())
	}
	if failed {
		return true, s.keepUndisturbed(ctx, failure, newPrinted(stdout.Bytes()))
	}
	return false, nil
}

// firstProfiles is the greatest number of executions that look for points before the first schedule, and
// profiledInstructions the number of instructions after which no other is begun there or after a batch.
const (
	firstProfiles        = 6
	profiledInstructions = 20_000_000
)

// findPoints finds the points and the limits of schedules.
func (s *search) findPoints(ctx context.Context) error {
	c := s.configFor(memmodel.SC)
	stage, err := newStage(c, true)
	if err != nil {
		return err
	}
	s.profiler = stage
	second, err := stage.runToSecondThread(ctx)
	if err != nil {
		return err
	}
	if !second {
		return errOneThread.New(c.Args[0], s.report.Accepted)
	}
	if s.options.HeapCheck && isStatic(stage.m.Kernel().Tasks()[0].Process()) {
		return errStatic.New(c.Args[0])
	}
	stage.keepStart()
	stage.goroutines.find(stage, stage.m.Kernel().Tasks()[0].Process())
	s.points = decisionPoints{at: map[arch.Addr]accessKind{}, lines: map[uint64]*line{}, creators: map[arch.ThreadID]arch.ThreadID{}}
	if err := s.profile(ctx, &schedule{kind: Kind{Strategy: points.Turns}, limits: s.limits}); err != nil {
		return err
	}
	s.length = stage.m.Instructions() - stage.started.instructions
	if !s.hasWhole {
		s.length = max(s.length, s.undisturbed-min(s.undisturbed, stage.started.instructions))
	}
	s.limits.limit(1<<62, hangFactor*s.length+hangInstructions)
	for n := range s.numberOfProfiles(firstProfiles) {
		x := &schedule{kind: Kind{Strategy: points.Walk}, seed: rand.Mix(s.seedBase() ^ uint64(n) ^ profileSeeds), limits: s.limits, at: s.points.at, stops: s.points.stops}
		if err := s.profile(ctx, x); err != nil {
			return err
		}
	}
	s.limitPoints()
	return nil
}

// limitPoints sets the number of points after which a run hangs. A profile that has found new points had not stopped
// at them: then the accesses to shared memory are counted. A profile that failed may have ended early: if all did,
// only the instructions are limited.
func (s *search) limitPoints() {
	if !s.hasWhole {
		return
	}
	accesses := uint64(0)
	for _, l := range s.points.lines {
		accesses += l.total
	}
	s.limits.limit(hangFactor*max(s.most, accesses)+hangPoints, s.limits.instructions)
	s.limits.fairPoints = min(s.limits.fairPoints, hangFactor*s.most+fairPoints)
	s.limits.fairInstructions = min(s.limits.fairInstructions, hangFactor*s.least+fairInstructions)
}

// isStatic reports whether a process was started without a dynamic linker: its auxiliary vector has no address of
// one. A process without the vector is taken for one.
func isStatic(p *kernel.Process) bool { return auxiliaryValue(p, atBase) == 0 }

// Keys of the auxiliary vector: the addresses of the dynamic linker and of the program's first instruction.
const (
	atBase  = 7
	atEntry = 9
)

// auxiliaryValue is an entry of a process's auxiliary vector, pairs of words of 64 bits, or 0.
func auxiliaryValue(p *kernel.Process, key uint64) uint64 {
	for v := p.Auxv(); len(v) >= 16; v = v[16:] {
		if binary.LittleEndian.Uint64(v) == key {
			return binary.LittleEndian.Uint64(v[8:])
		}
	}
	return 0
}

// refineSeeds sets the seeds of profiles after a batch apart from those of schedules.
const refineSeeds = 1 << 61

// profileSeeds sets the seeds of the first profiles apart from those of schedules.
const profileSeeds = 1 << 63

// mostProfiles bounds the profiles after a batch: later ones seldom find more.
const mostProfiles = 24

// refinePoints adds the points of executions of the kinds that the schedules from a number on are of.
func (s *search) refinePoints(ctx context.Context, first, number int) error {
	for n := range s.numberOfProfiles(min(number, mostProfiles)) {
		// All strategies and both ways to decide have their turn.
		kind := s.planner.kindInTurn(first+n*len(s.options.Models), s.options.Models)
		x := s.scheduleOf(-1, kind, rand.Mix(s.seedBase()^uint64(first+n)^refineSeeds))
		if err := s.profile(ctx, x); err != nil {
			return err
		}
	}
	s.limitPoints()
	return nil
}

// numberOfProfiles is how many of a number of profiles are executed, one or more: those of a long program
// take long.
func (s *search) numberOfProfiles(number int) int {
	return min(number, 1+int(profiledInstructions/(1+s.length)))
}

// fails reports whether the execution that is over failed.
func (s *search) fails(stage *stage) (bool, error) {
	_, failed, err := stage.failure(s.report.Accepted)
	return failed || err == nil && s.outputs.isWrong(stage.stdout.Bytes()), err
}

// profile adds the points of the execution of a schedule. One that fails becomes a schedule of the search.
func (s *search) profile(ctx context.Context, x *schedule) error {
	stage := s.profiler
	found := newProfile(stage.actsForGoroutine)
	stage.profiled = found
	plan := *x
	plan.at = maps.Clone(x.at) // which grows
	for second := range 2 {
		if second == 1 {
			found.beginSecond()
		}
		stage.begin(x)
		if err := stage.run(ctx, x); err != nil {
			return err
		}
	}
	failed, err := s.fails(stage)
	if err != nil {
		return err
	}
	if failed {
		s.suspects = append(s.suspects, &plan)
	} else {
		length := stage.m.Instructions() - stage.started.instructions
		if !s.hasWhole || length < s.least {
			s.least = length
		}
		s.hasWhole = true
	}
	if len(x.at) == len(s.points.at) {
		s.most = max(s.most, stage.policy.Points())
	}
	s.report.Threads = max(s.report.Threads, stage.m.Kernel().Stats().Threads)
	s.noteMutexes(found)
	s.points.add(found.result())
	s.points.chooseFocuses(stage.isOwn)
	s.planner.isOwn = stage.isOwn
	return nil
}
