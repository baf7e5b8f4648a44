package slice_test

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// stand is a program of the suite with small arguments.
type stand struct {
	name string
	args []string
}

var stands = []stand{
	{"blackscholes", []string{"-p", "2", "-n", "32", "-r", "2"}},
	{"fft", []string{"-p", "2", "-m", "6"}},
	{"lu-contig", []string{"-p", "2", "-n", "32"}},
	{"lu-non-contig", []string{"-p", "2", "-n", "32"}},
	{"swaptions", []string{"-p", "2", "-n", "2", "-t", "20"}},
	{"streamcluster", []string{"-p", "2", "-n", "16", "-c", "16", "-d", "2", "-k", "2", "-l", "4"}},
	{"radix", []string{"-p", "2", "-n", "256", "-r", "16", "-m", "8"}},
	{"water-nsquared", []string{"-p", "2", "-n", "27", "-t", "1"}},
	{"barnes", []string{"-p", "2", "-n", "16"}},
	{"compressor", []string{"-p", "2", "-n", "2", "-b", "1"}},
}

func (s *stand) record(t testing.TB) *recorded { return record(t, s.config(t), arguments) }

func (s *stand) config(t testing.TB) machine.Config {
	t.Helper()
	p, err := suite.Find(s.name)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := p.Build(suite.Variant{Form: suite.Fixed, Optimize: 2})
	if err != nil {
		t.Fatal(err)
	}
	return config(t, append([]string{bin}, s.args...)...)
}

// If two accesses of the program were to the same address, the analysis says that they may
// overlap. Frames are left out, and memory is never freed, since reused memory would belong
// to two objects.
func TestAliasesCoverExecutions(t *testing.T) {
	keep := gcctest.C(t, "void free(void *p) { (void)p; }", "-shared", "-fPIC")
	list := stands[:3]
	if !testing.Short() {
		list = stands
	}
	for _, st := range list {
		t.Run(st.name, func(t *testing.T) {
			config := st.config(t)
			config.Env = append(slices.Clone(config.Env), "LD_PRELOAD="+keep)
			config.Mounts = append(config.Mounts, machine.Mount{Host: keep, Guest: keep})
			s := slice.Make(record(t, config, arguments).input, slice.DefaultOptions())
			c := &coverage{t: t, Slice: s, at: map[uint64][]alias.Set{}}
			c.reached()
			for i := range s.Calls.Threads {
				c.thread(i)
			}
			if c.accesses < 1000 {
				t.Errorf("%d accesses", c.accesses)
			}
			t.Logf("%d accesses, %d of them unknown; %d sets, of %d pairs of them %d may meet and %d do",
				c.accesses, c.unknown, s.Alias.NumSets(), s.Alias.NumSets()*(s.Alias.NumSets()-1)/2, c.may(), c.met)
		})
	}
}

type coverage struct {
	t *testing.T
	*slice.Slice
	at                map[uint64][]alias.Set // by byte
	accesses, unknown int
	met, wrong        int
	pairs             map[[2]alias.Set]bool
}

func (c *coverage) thread(n int) {
	t := c.Calls.Threads[n]
	moves, frame := t.FrameChanges, -1
	for cu := t.Cursor(0); cu.Next(); {
		for len(moves) > 0 && moves[0].Step <= cu.Index {
			frame, moves = moves[0].Frame, moves[1:]
		}
		if frame < 0 || t.Frames[frame].Context == nil {
			continue
		}
		x := t.Frames[frame].Context
		sites := c.Sites(x, cu.Block)
		for i, at := range cu.Addrs {
			if at == blocktrace.NoAddr {
				continue
			}
			c.accesses++
			if sites[i] == alias.Unknown {
				c.unknown++
			}
			if at > 0x7f0000000000 { // stacks
				continue
			}
			for k := range cu.Block.Sites[i].Size {
				c.access(at+uint64(k), sites[i], x.Name(), cu.Block.Addr)
			}
		}
	}
}

func (c *coverage) access(at uint64, s alias.Set, name string, pc uint64) {
	known := c.at[at]
	if slices.Contains(known, s) {
		return
	}
	for _, o := range known {
		key := [2]alias.Set{min(s, o), max(s, o)}
		if c.pairs == nil {
			c.pairs = map[[2]alias.Set]bool{}
		}
		if c.pairs[key] {
			continue
		}
		c.pairs[key] = true
		c.met++
		if !c.Alias.MayOverlap(s, o) {
			if c.wrong++; c.wrong < 6 {
				c.t.Errorf("%#x is of %s and of %s, in %s at %#x", at, c.Alias.Describe(s), c.Alias.Describe(o), name, pc)
			}
		}
	}
	c.at[at] = append(known, s)
}

// may returns the number of pairs of sets that may overlap; the index of sets by region
// finds each of them.
func (c *coverage) may() int {
	n := 0
	for i := range c.Alias.NumSets() {
		meeting := c.Alias.Overlapping(alias.Set(i))
		for k := range c.Alias.NumSets() {
			may := c.Alias.MayOverlap(alias.Set(k), alias.Set(i))
			if may && k < i {
				n++
			}
			if _, found := slices.BinarySearch(meeting, alias.Set(k)); found != may {
				c.t.Errorf("%s and %s: %t, %t by region", c.Alias.Describe(alias.Set(k)), c.Alias.Describe(alias.Set(i)), may, found)
			}
		}
	}
	return n
}

// reached finds blocks that were executed and that the analysis does not reach.
func (c *coverage) reached() {
	for _, x := range c.Calls.Contexts {
		for _, b := range x.Function.Blocks {
			if x.Executed[b.Index] > 0 && !c.Alias.IsReached(x, b) {
				c.t.Errorf("%s: %#x was executed, and is not come to", x.Name(), b.Addr)
			}
		}
	}
}
