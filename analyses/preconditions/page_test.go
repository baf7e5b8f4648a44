package preconditions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Terms are grouped by input, arguments by their numbers, and the shortest of a group first.
func TestPage(t *testing.T) {
	p := symbolic.NewPool()
	s := &preconditions.Set{Derived: map[string]*concolic.Derived{}}
	ten, two, size := atoi(s, p, 10), atoi(s, p, 2), p.Symbol("size(stdin)", 64)
	s.Terms = []*symbolic.Expr{
		p.SLE(two, ten), p.Eq(ten, p.Word(100000, 32)), p.ULT(p.Word(5, 64), size), p.Not(p.Eq(ten, p.Word(1, 32))), p.Eq(two, p.Word(3, 32)),
		p.Eq(p.Symbol("stdin[0]", 8), p.Word('a', 8)),
	}
	lines, cut := s.Page()
	want := []string{
		"argv[2]", "  atoi(argv[2]) = 3", "argv[10]", "  atoi(argv[10]) ≠ 1", "  atoi(argv[10]) = 100000",
		"stdin", `  stdin[0] = 'a'`, "  5 <u size(stdin)", "argv[2], argv[10]", "  atoi(argv[2]) ≤ atoi(argv[10])",
	}
	if !slices.Equal(lines, want) || cut != 0 {
		t.Errorf("%d %s\nwant %s", cut, strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// A page is short, whatever the terms are: a term of 2^1000 nodes, and thousands of terms.
func TestPageIsShort(t *testing.T) {
	p := symbolic.NewPool()
	s := &preconditions.Set{}
	huge := p.Symbol("argv[1][0]", 8)
	for range 1000 {
		huge = p.Mul(huge, huge)
	}
	s.Terms = append(s.Terms, p.Eq(huge, p.Word(1, 8)))
	for i := range 5000 {
		s.Terms = append(s.Terms, p.Not(p.Eq(p.Symbol(fmt.Sprintf("argv[2][%d]", i%100), 8), p.Word(uint64(i/100), 8))))
	}
	lines, cut := s.Page()
	if len(strings.Join(lines, "\n")) > 10_000 || cut < 4900 || !slices.Contains(lines, "argv[1]") {
		t.Errorf("%d cut, %d lines:\n%s", cut, len(lines), strings.Join(lines, "\n"))
	}
}
