package mm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// TestListAgreesWithSlice compares a list with a sorted slice.
func TestListAgreesWithSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l mappingList
		var model []VMA
		const space = 4000 * arch.PageSize
		page := func(t *rapid.T, label string) arch.Addr {
			return arch.Addr(rapid.IntRange(0, 4000).Draw(t, label)) * arch.PageSize
		}
		find := func(va arch.Addr) int {
			return slices.IndexFunc(model, func(v VMA) bool { return v.End > va })
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert many": func(t *rapid.T) {
				stack := Flags(0)
				for range rapid.IntRange(1, 200).Draw(t, "count") {
					v := VMA{Start: page(t, "start"), Flags: stack}
					v.End = v.Start + arch.Addr(rapid.IntRange(1, 3).Draw(t, "pages"))*arch.PageSize
					i := find(v.Start)
					if i < 0 {
						i = len(model)
					} else if model[i].Start < v.End {
						continue
					}
					l.insert(v)
					model = slices.Insert(model, i, v)
					stack ^= GrowsDown
				}
			},
			"remove many": func(t *rapid.T) {
				for range rapid.IntRange(1, 150).Draw(t, "count") {
					i := find(page(t, "address"))
					if i < 0 {
						continue
					}
					l.remove(l.find(model[i].Start))
					model = slices.Delete(model, i, i+1)
				}
			},
			"resize": func(t *rapid.T) {
				i := find(page(t, "address"))
				if i < 0 {
					t.Skip("none")
				}
				limit := arch.Addr(space + 4*arch.PageSize)
				if i+1 < len(model) {
					limit = model[i+1].Start
				}
				p := l.find(model[i].Start)
				model[i].End = min(limit, model[i].End+arch.PageSize)
				l.at(p).End = model[i].End
				l.updateChunk(p.c)
			},
			"": func(t *rapid.T) {
				checkList(t, &l, model)
				low, high, size := page(t, "low"), page(t, "high"), uint64(rapid.IntRange(1, 600).Draw(t, "size"))*arch.PageSize
				checkGaps(t, &l, model, low, high, size)
			},
		})
	})
}

func checkList(t *rapid.T, l *mappingList, model []VMA) {
	var forward []VMA
	for p := (position{}); l.at(p) != nil; p = l.next(p) {
		forward = append(forward, *l.at(p))
		if before := l.before(p); len(forward) > 1 && (before == nil || *before != forward[len(forward)-2]) {
			t.Fatalf("before %#x is %+v", l.at(p).Start, before)
		}
	}
	if !slices.Equal(forward, model) || l.count != len(model) {
		t.Fatalf("%d mappings, want %d", len(forward), len(model))
	}
	for _, c := range l.chunks {
		if len(c.v) == 0 || len(c.v) > chunkMax || c.start != c.v[0].Start {
			t.Fatalf("chunk of %d", len(c.v))
		}
	}
}

// checkGaps compares the searches with one that tries every address.
func checkGaps(t *rapid.T, l *mappingList, model []VMA, low, high arch.Addr, size uint64) {
	isFree := func(at arch.Addr) bool {
		end := at + arch.Addr(size)
		next := slices.IndexFunc(model, func(v VMA) bool { return v.End > at })
		return next < 0 || end <= model[next].lowestReserved()
	}
	var lowest, highest arch.Addr
	found := false
	for at := low; at+arch.Addr(size) <= high; at += arch.PageSize {
		if isFree(at) {
			if !found {
				lowest = at
			}
			found, highest = true, at
		}
	}
	if at, ok := l.highestGap(size, low, high); ok != found || ok && at != highest {
		t.Fatalf("highest gap of %#x in [%#x, %#x): %#x, %v, want %#x, %v", size, low, high, at, ok, highest, found)
	}
	if at, ok := l.lowestGap(size, low, high); ok != found || ok && at != lowest {
		t.Fatalf("lowest gap of %#x in [%#x, %#x): %#x, %v, want %#x, %v", size, low, high, at, ok, lowest, found)
	}
}
