package chunks_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/internal/chunks"
)

// An added value stays at its place, whatever is added later.
func TestList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type part struct {
			at   int
			want []int
		}
		var l chunks.List[int]
		var parts []part
		next, total := 0, 0
		for range rapid.IntRange(1, 12).Draw(t, "parts") {
			n := rapid.IntRange(0, chunks.Size).Draw(t, "n")
			if rapid.Bool().Draw(t, "one") {
				*l.Add() = next
				parts = append(parts, part{l.Len() - 1, []int{next}})
				next, total = next+1, total+1
				continue
			}
			at, all := l.Grow(n)
			for i := range all {
				all[i] = next
				next++
			}
			total += n
			parts = append(parts, part{at, slices.Clone(all)})
		}
		for _, p := range parts {
			if have := l.Slice(p.at, len(p.want)); !slices.Equal(have, p.want) {
				t.Fatalf("at %d: %d things, want %d", p.at, len(have), len(p.want))
			}
			for i, x := range p.want {
				if *l.At(p.at + i) != x {
					t.Fatalf("at %d: %d, want %d", p.at+i, *l.At(p.at + i), x)
				}
			}
		}
		if l.Len() < total {
			t.Fatalf("%d places for %d", l.Len(), total)
		}
	})
}
