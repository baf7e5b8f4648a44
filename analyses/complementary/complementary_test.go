package complementary_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/analyses/complementary"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// table1 is the paper's, row by row.
var table1 = []struct {
	results  []complementary.Combination
	bug      complementary.Bug
	rollback bool
	commits  string // letters that may be committed
}{
	{[]complementary.Combination{"A-AA"}, complementary.NoBug, false, "A"},
	{[]complementary.Combination{"F-FF"}, complementary.NonRace, true, ""},
	{[]complementary.Combination{"A-AB", "A-BA"}, complementary.TypeI, true, ""},
	{[]complementary.Combination{"A-AF", "A-FA"}, complementary.TypeI, false, "A"},
	{[]complementary.Combination{"F-FA", "F-AF"}, complementary.TypeI, false, "A"},
	{[]complementary.Combination{"A-BB"}, complementary.TypeII, false, "B"},
	{[]complementary.Combination{"A-BC"}, complementary.TypeII, false, "BC"},
	{[]complementary.Combination{"F-AA"}, complementary.TypeII, false, "A"},
	{[]complementary.Combination{"F-AB"}, complementary.TypeII, false, "AB"},
	{[]complementary.Combination{"A-BF", "A-FB"}, complementary.Multiple, true, ""},
	{[]complementary.Combination{"A-FF"}, complementary.Multiple, true, ""},
}

func TestTable1(t *testing.T) {
	if len(table1) != 11 {
		t.Fatalf("%d rows", len(table1))
	}
	for _, row := range table1 {
		for _, c := range row.results {
			d := c.Diagnose()
			if d.Bug != row.bug || (d.Commit == complementary.NoReplica) != row.rollback {
				t.Errorf("%s: %+v", c, d)
			}
			if d.Commit != complementary.NoReplica {
				letter := []byte{c[0], c[2], c[3]}[d.Commit]
				if !slices.Contains([]byte(row.commits), letter) {
					t.Errorf("%s commits %c", c, letter)
				}
			}
			if c.Race() != (row.bug != complementary.NoBug && row.bug != complementary.NonRace) || c.Canonical() != row.results[0] {
				t.Errorf("%s: race %v, canonical %s", c, c.Race(), c.Canonical())
			}
		}
	}
}

// TestEveryResultIsInTheTable: three replicas, each of which fails or comes to one
// of three results.
func TestEveryResultIsInTheTable(t *testing.T) {
	seen := map[complementary.Combination]bool{}
	for n := range 64 {
		r := [3]int{n % 4, n / 4 % 4, n / 16}
		c := complementary.Combine([3]bool{r[0] == 3, r[1] == 3, r[2] == 3}, func(i, j int) bool { return r[i] == r[j] })
		if c.Diagnose().Bug == "" {
			t.Errorf("%v: %s is not in the table", r, c)
		}
		seen[c] = true
	}
	if len(seen) != 15 {
		t.Errorf("%d combinations", len(seen))
	}
}

// TestFigure3: the threads of figure 3, of which A and C synchronize. With the
// order ABC, b comes before a1 in both schedules; BAC, the paper's remedy, and its
// equals have A and C next to each other.
func TestFigure3(t *testing.T) {
	const a, b, c = 1, 2, 3
	counts := complementary.Constraints{}
	counts.Add(c, a, 1)
	if n := counts.Inversions(complementary.Order{a, b, c}); n != 1 {
		t.Errorf("%d inversions of ABC", n)
	}
	if n := counts.Inversions(complementary.Order{b, a, c}); n != 0 {
		t.Errorf("%d inversions of BAC", n)
	}
	for _, o := range []complementary.Order{
		counts.Greedy([]arch.ThreadID{a, b, c}), counts.Exact([]arch.ThreadID{a, b, c}),
	} {
		if counts.Inversions(o) != 0 {
			t.Errorf("order %v", o)
		}
	}
}

// TestGreedy follows the words of section 3.4.2 on four threads.
func TestGreedy(t *testing.T) {
	counts := complementary.Constraints{}
	counts.Add(1, 3, 10) // the most: next to each other
	counts.Add(3, 4, 5)  // then 4 beside 3
	counts.Add(1, 2, 4)  // and 2 beside 1
	counts.Add(2, 4, 3)
	if o := counts.Greedy([]arch.ThreadID{1, 2, 3, 4}); !slices.Equal(o, complementary.Order{2, 1, 3, 4}) {
		t.Errorf("order %v", o)
	}
}

func TestOrderProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 8).Draw(t, "threads")
		threads := make([]arch.ThreadID, n)
		for i := range threads {
			threads[i] = arch.ThreadID(1000 + i)
		}
		counts := complementary.Constraints{}
		for i := range threads {
			for j := range i {
				counts.Add(threads[i], threads[j], rapid.Uint64Range(0, 5).Draw(t, "count"))
			}
		}
		greedy, exact := counts.Greedy(threads), counts.Exact(threads)
		for _, o := range []complementary.Order{greedy, exact} {
			sorted := slices.Clone(o)
			slices.Sort(sorted)
			if !slices.Equal(sorted, threads) {
				t.Fatalf("%v is no order of %v", o, threads)
			}
			if counts.Inversions(o) != counts.Inversions(o.Reverse()) {
				t.Fatalf("the reverse of %v differs", o)
			}
		}
		if counts.Inversions(exact) > counts.Inversions(greedy) {
			t.Fatalf("exact %v, greedy %v", exact, greedy)
		}
	})
}

func TestVote(t *testing.T) {
	for _, c := range []struct {
		results []int
		want    int
	}{
		{nil, -1}, {[]int{-1, -1}, -1}, {[]int{0}, 0}, {[]int{0, 1, 1}, 1}, {[]int{-1, -1, 2}, 2}, {[]int{0, 1}, 0},
	} {
		if got := complementary.Vote(c.results); got != c.want {
			t.Errorf("%v: %d", c.results, got)
		}
	}
}

// TestLength has the numbers of section 3.2: growth by 50 ms to a second, cuts by
// 20.
func TestLength(t *testing.T) {
	l := complementary.NewLength(50)
	l.Grow()
	if l.Now != 100 || l.Grace != 0.1 {
		t.Errorf("%v after one epoch, and %v after output", l.Now, l.Grace)
	}
	for range 100 {
		l.Grow()
	}
	if l.Now != 1000 || l.Grace != 5 {
		t.Errorf("%v at most, and %v after output", l.Now, l.Grace)
	}
	l.Cut()
	if l.Now != 50 || l.Grace != 0.05 {
		t.Errorf("%v after a race, and %v after output", l.Now, l.Grace)
	}
	l.Grow()
	if l.Grace != 0.05 {
		t.Errorf("%v after output, after a race", l.Grace)
	}
	for range 10 {
		l.Cut()
	}
	if l.Now <= 0 {
		t.Errorf("%v at least", l.Now)
	}
}

func TestSampler(t *testing.T) {
	for _, rate := range []float64{0, 0.035, 0.25, 0.5, 1} {
		s, err := complementary.NewSampler(rate)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			s.Next(float64(1 + i%7))
		}
		if math.Abs(s.Checked()-rate) > 0.01 {
			t.Errorf("rate %v: %v", rate, s.Checked())
		}
	}
	if _, err := complementary.NewSampler(1.5); err == nil {
		t.Error("a rate of 1.5 is allowed")
	}
}
