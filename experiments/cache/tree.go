package cache

import (
	"cmp"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Tree is the decision tree of a program's entries. A node's branches are what an
// input must satisfy in addition: on the first level of its arguments, on the second
// of its variables, on the third of its files, as a run gets them one after the other.
// What several entries ask for is looked at once.
type Tree struct {
	root *node
	// Checks counts the branches that inputs were compared with.
	Checks int
}

type node struct {
	branches []*branch
	entries  []*Entry // at the last level, those that are followed most often first
}

type branch struct {
	key     string
	checker *preconditions.Checker
	to      node
	// tries and reuses are those of all entries behind it.
	tries, reuses int
}

func (b *branch) rate() float64 { return (float64(b.reuses) + 0.5) / (float64(b.tries) + 0.5) }

const levels = 3

// NewTree makes the tree of some entries. Those whose preconditions cannot be checked
// are left out.
func NewTree(entries []*Entry) *Tree {
	t := &Tree{root: &node{}}
	for _, e := range entries {
		t.add(e)
	}
	t.root.sort()
	return t
}

// add merges an entry into the tree.
func (t *Tree) add(e *Entry) {
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
	for level := range levels {
		part := *set
		part.Terms = nil
		for i, term := range set.Terms {
			if of[i] == level {
				part.Terms = append(part.Terms, term)
			}
		}
		b := at.branch(&part)
		b.tries += e.Tries
		b.reuses += e.Reuses
		at = &b.to
	}
	at.entries = append(at.entries, e)
}

// branch finds or makes the branch of a part of preconditions.
func (n *node) branch(s *preconditions.Set) *branch {
	key := strings.Join(s.Lines(), "\n")
	for _, b := range n.branches {
		if b.key == key {
			return b
		}
	}
	checker, err := preconditions.NewChecker(s)
	if err != nil {
		panic("bug: a part of what can be checked cannot: " + err.Error())
	}
	n.branches = append(n.branches, &branch{key: key, checker: checker})
	return n.branches[len(n.branches)-1]
}

// sort puts first what was followed most often.
func (n *node) sort() {
	slices.SortStableFunc(n.branches, func(a, b *branch) int { return cmp.Compare(b.rate(), a.rate()) })
	slices.SortStableFunc(n.entries, func(a, b *Entry) int { return cmp.Compare(b.Rate(), a.Rate()) })
	for _, b := range n.branches {
		b.to.sort()
	}
}

// Find is the first entry that admits an input, and that a test lets pass which is
// about more than the input; nil: there is none.
func (t *Tree) Find(in *preconditions.Input, also func(*Entry) bool) *Entry {
	return t.find(t.root, in, also)
}

func (t *Tree) find(n *node, in *preconditions.Input, also func(*Entry) bool) *Entry {
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
		if e := t.find(&b.to, in, also); e != nil {
			return e
		}
	}
	return nil
}
