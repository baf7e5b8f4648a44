package cache

import (
	"cmp"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Tree is the decision tree of a program's entries. A node's branches are further
// conditions on an input: on the first level on its arguments, on the second on its
// variables, on the third on its files, in the order in which a run gets them. Conditions
// that several entries share are checked once.
type Tree struct {
	root *treeNode
	// Checks counts the branches that inputs were checked against.
	Checks int
}

type treeNode struct {
	branches []*treeBranch
	entries  []*Entry // on the last level, in decreasing order of their rates
}

type treeBranch struct {
	key     string
	checker *preconditions.Checker
	to      treeNode
	// tries and reuses are the sums over all entries below it.
	tries, reuses int
}

func (b *treeBranch) reuseRate() float64 { return (float64(b.reuses) + 0.5) / (float64(b.tries) + 0.5) }

const numLevels = 3

// NewTree makes the tree of some entries. Entries whose preconditions cannot be checked are
// left out.
func NewTree(entries []*Entry) *Tree {
	t := &Tree{root: &treeNode{}}
	for _, e := range entries {
		t.addEntry(e)
	}
	t.root.sortByRate()
	return t
}

// addEntry merges an entry into the tree.
func (t *Tree) addEntry(e *Entry) {
	set, err := preconditions.Parse(e.File.Preconditions, symbolic.NewPool())
	if err != nil {
		return
	}
	whole, err := preconditions.NewChecker(set)
	if err != nil {
		return
	}
	of := whole.Levels()
	at := t.root
	for level := range numLevels {
		part := *set
		part.Terms = nil
		for i, term := range set.Terms {
			if of[i] == level {
				part.Terms = append(part.Terms, term)
			}
		}
		b := at.branchFor(&part)
		b.tries += e.Tries
		b.reuses += e.Reuses
		at = &b.to
	}
	at.entries = append(at.entries, e)
}

// branchFor finds or makes the branch for a part of preconditions.
func (n *treeNode) branchFor(s *preconditions.Set) *treeBranch {
	key := strings.Join(s.Lines(), "\n")
	for _, b := range n.branches {
		if b.key == key {
			return b
		}
	}
	checker, err := preconditions.NewChecker(s)
	if err != nil {
		panic("bug: a checkable part cannot be read: " + err.Error())
	}
	n.branches = append(n.branches, &treeBranch{key: key, checker: checker})
	return n.branches[len(n.branches)-1]
}

// sortByRate puts the branches and entries with the highest reuse rate first.
func (n *treeNode) sortByRate() {
	slices.SortStableFunc(n.branches, func(a, b *treeBranch) int { return cmp.Compare(b.reuseRate(), a.reuseRate()) })
	slices.SortStableFunc(n.entries, func(a, b *Entry) int { return cmp.Compare(b.Rate(), a.Rate()) })
	for _, b := range n.branches {
		b.to.sortByRate()
	}
}

// Find returns the first entry that admits an input and that passes a further test; nil:
// there is no such entry.
func (t *Tree) Find(in *preconditions.Input, also func(*Entry) bool) *Entry {
	return t.findBelow(t.root, in, also)
}

func (t *Tree) findBelow(n *treeNode, in *preconditions.Input, also func(*Entry) bool) *Entry {
	for _, e := range n.entries {
		if also(e) {
			return e
		}
	}
	for _, b := range n.branches {
		t.Checks++
		if failed, shape := b.checker.Check(in); failed >= 0 || !shape {
			continue
		}
		if e := t.findBelow(&b.to, in, also); e != nil {
			return e
		}
	}
	return nil
}
