package tern

import (
	"context"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/analyses/specialize"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// allocatorSummaries say that the location of allocated memory is no input and that the
// allocator's internal decisions matter to no other code (PEREGRINE section 2.3). Realloc,
// which copies, is not among them.
func allocatorSummaries() []concolic.Summary {
	var list []concolic.Summary
	for _, name := range []string{"malloc", "calloc", "free", "memalign", "aligned_alloc", "posix_memalign", "valloc"} {
		list = append(list, concolic.Summary{Function: name, Result: "none"})
	}
	return list
}

// compressionSummaries say that compressed data and check sums decide nothing about schedules. Of a stream of zlib only
// the first members are looked at by programs; the rest is its own.
func compressionSummaries() []concolic.Summary {
	var list []concolic.Summary
	for _, s := range []struct {
		bits   int
		writes []int
		names  []string
	}{
		{32, []int{1, 2}, []string{"BZ2_bzBuffToBuffCompress", "BZ2_bzBuffToBuffDecompress"}},
		{32, []int{1}, []string{"deflate", "deflateParams", "deflateReset", "deflateSetDictionary", "inflate"}},
		{32, []int{2, 3}, []string{"deflatePending"}},
		{64, nil, []string{"crc32", "crc32_z", "adler32", "adler32_z"}},
	} {
		for _, name := range s.names {
			list = append(list, concolic.Summary{Function: name, Result: "opaque", Bits: s.bits, Writes: s.writes})
		}
	}
	return list
}

// ConcolicRun is a recorded run, repeated on expressions, with the input of slicing. It
// must be closed.
type ConcolicRun struct {
	// Config is the recorded run's.
	Config machine.Config
	// Recording has the expressions, Input the data for slicing.
	Recording *concolicrun.Recording
	Input     *slice.Input
}

// Close releases the recording.
func (f *ConcolicRun) Close() { f.Recording.Close() }

// RunConcolic repeats the recorded run of a trace on expressions; s is its schedule. If the run is not followed to its end,
// the result has its configuration only.
func RunConcolic(ctx context.Context, path string, s *peregrine.Schedule, o Options) (*ConcolicRun, error) {
	f := &ConcolicRun{Input: &slice.Input{Events: specialize.NewEvents(s.Schedule, s.Marks, s.IDs), Models: cfg.DefaultModels()}}
	var err error
	f.Recording, err = concolicrun.Repeat(ctx, path, func(c *machine.Config) (concolicrun.Options, error) {
		f.Config = *c
		if f.Input.Image, err = programImage(c, path); err != nil {
			return concolicrun.Options{}, err
		}
		folders, err := inputFolders(c, path)
		return o.replayOptions(c, folders, newStages(ctx, &o)), err
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case endsEarly(err):
		return f, err
	case err != nil && f.Config.Args != nil:
		return f, errFollow.Wrap(err, f.Config.Args[0])
	case err != nil:
		return nil, err
	}
	f.Input.Trace = f.Recording.Path.Trace()
	return f, nil
}

// replayOptions returns the options for repeating a run.
func (o *Options) replayOptions(c *machine.Config, folders []int, s *stages) concolicrun.Options {
	f := concolicrun.Options{
		Dir: c.Dir, Folders: folders, Summaries: o.Summaries, Path: true,
		MaxTerms: o.Budget.Terms, MaxInstructions: o.Budget.Instructions, Progress: s.followed,
	}
	if f.Summaries == nil {
		f.Summaries = slices.Concat(concolic.DefaultSummaries(), allocatorSummaries(), compressionSummaries())
	}
	if named, ok := c.Stdin.(interface{ Name() string }); ok {
		f.Stdin = named.Name()
	}
	names := f
	names.Args = c.Args
	f.Choose = func(e *event.Input) bool { return o.isSymbolic(&names, e) }
	return f
}

// isSymbolic reports whether an input becomes symbols: arguments except the program's name,
// some variables, standard input, data from sockets, and files that arguments name.
func (o *Options) isSymbolic(f *concolicrun.Options, e *event.Input) bool {
	switch e.Source {
	case event.InputArgs:
		return e.Offset > 0
	case event.InputEnv:
		name, _, _ := strings.Cut(string(e.Data), "=")
		return slices.Contains(o.Variables, name)
	case event.InputStdin, event.InputSocket:
		return true
	case event.InputFile:
		return f.FileName(e.Name) != e.Name
	}
	return false
}
