package mem

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// newRAM makes a RAM, and checks at the end that everything was given back to it.
func newRAM(t testing.TB, bytes uint64) *RAM {
	t.Helper()
	r, err := NewRAM(bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		checkGivenBack(t, r)
		r.Close()
	})
	return r
}

func checkGivenBack(t interface{ Errorf(string, ...any) }, r *RAM) {
	if r.Used() != 0 || r.Tables() != 0 {
		t.Errorf("%d pages and %d page tables are left", r.Used(), r.Tables())
	}
}

func TestRAMRefusesAbsurdSizes(t *testing.T) {
	for _, bytes := range []uint64{0, arch.PageSize, 1 << 44, 1 << 63} {
		if r, err := NewRAM(bytes); err == nil {
			r.Close()
			t.Errorf("%d bytes were accepted", bytes)
		}
	}
}

// TestRAMHandsOutUpToItsLimit also checks that pages come back as zeros.
func TestRAMHandsOutUpToItsLimit(t *testing.T) {
	r := newRAM(t, 64*arch.PageSize)
	for round := range 3 {
		var pages []Page
		for {
			p, ok := r.Alloc()
			if !ok {
				break
			}
			if slices.ContainsFunc(r.Bytes(p), func(b byte) bool { return b != 0 }) {
				t.Fatalf("round %d: page %d is not zero", round, p)
			}
			copy(r.Bytes(p), "used")
			pages = append(pages, p)
		}
		if uint64(len(pages)) != r.Limit() || !r.Full() {
			t.Errorf("round %d: %d pages of %d were handed out", round, len(pages), r.Limit())
		}
		slices.Sort(pages)
		if pages[0] == ZeroPage || len(slices.Compact(pages)) != int(r.Limit()) {
			t.Errorf("round %d: the page of zeros or a page twice", round)
		}
		for _, p := range pages {
			r.Unref(p)
		}
	}
	if r.Peak() != r.Limit() {
		t.Errorf("peak %d", r.Peak())
	}
}

// TestRAMCountsOwners compares reference counts with a map.
func TestRAMCountsOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, err := NewRAM(32 * arch.PageSize)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		owners := map[Page]int{}
		var held []Page // once for each reference
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				p, ok := r.Alloc()
				if ok != (uint64(len(owners)) < r.Limit()) {
					t.Fatalf("alloc with %d of %d pages out: %v", len(owners), r.Limit(), ok)
				}
				if ok {
					if owners[p] != 0 {
						t.Fatalf("page %d was handed out twice", p)
					}
					owners[p], held = 1, append(held, p)
				}
			},
			"ref": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("none")
				}
				p := rapid.SampledFrom(held).Draw(t, "page")
				r.Ref(p)
				owners[p]++
				held = append(held, p)
			},
			"unref": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("none")
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "owner")
				p := held[i]
				held = slices.Delete(held, i, i+1)
				r.Unref(p)
				if owners[p]--; owners[p] == 0 {
					delete(owners, p)
				}
			},
			"": func(t *rapid.T) {
				if r.Used() != uint64(len(owners)) {
					t.Fatalf("%d pages used, want %d", r.Used(), len(owners))
				}
				for p, n := range owners {
					if r.Refs(p) != n {
						t.Fatalf("page %d has %d owners, want %d", p, r.Refs(p), n)
					}
				}
			},
		})
	})
}

func TestZeroPageIsNeverGivenBack(t *testing.T) {
	r := newRAM(t, 8*arch.PageSize)
	for range 3 {
		r.Ref(ZeroPage)
		r.Unref(ZeroPage)
		r.Unref(ZeroPage)
	}
	if p, _ := r.Alloc(); p == ZeroPage {
		t.Error("the page of zeros was handed out")
	} else {
		r.Unref(p)
	}
}
