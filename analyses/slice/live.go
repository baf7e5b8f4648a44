package slice

import (
	"math/bits"

	"github.com/heddle-dmt/heddle/analyses/alias"
)

// live is memory that the slice reads later: bytes, with the sets that the loads which
// read them have.
type live struct {
	pages map[uint64]*livePage
	last  *livePage
	at    uint64
	// counts is how many words there are of a set, and more if it is there for good.
	counts []int32
	sets   bitset
	bytes  int
}

const (
	pageShift = 12
	pageWords = 512
)

type livePage struct {
	mask [pageWords]uint8
	set  [pageWords]alias.Set
}

func newLive() *live { return &live{pages: map[uint64]*livePage{}, at: ^uint64(0)} }

// page is a page, nil if nothing in it was ever live.
func (l *live) page(addr uint64) *livePage {
	if n := addr >> pageShift; n != l.at {
		l.at, l.last = n, l.pages[n]
	}
	return l.last
}

func (l *live) make(addr uint64) *livePage {
	p := l.page(addr)
	if p == nil {
		p = &livePage{}
		l.pages[addr>>pageShift] = p
		l.last = p
	}
	return p
}

// byteMask is the bytes of a word from an address on, as far as n go, and how many
// those are.
func byteMask(addr uint64, n int) (uint8, int) {
	from := int(addr & 7)
	k := min(8-from, n)
	return uint8((1<<k - 1) << from), k
}

// any tells whether one of n bytes is live.
func (l *live) any(addr uint64, n int) bool {
	if l.bytes == 0 {
		return false
	}
	for n > 0 {
		m, k := byteMask(addr, n)
		if p := l.page(addr); p != nil && p.mask[addr>>3%pageWords]&m != 0 {
			return true
		}
		addr, n = addr+uint64(k), n-k
	}
	return false
}

// add makes n bytes live that a load of a set reads.
func (l *live) add(addr uint64, n int, s alias.Set) {
	for n > 0 {
		m, k := byteMask(addr, n)
		p, w := l.make(addr), addr>>3%pageWords
		switch {
		case p.mask[w] == 0:
			p.set[w] = s
			l.count(s)
		case p.set[w] != s && !l.sets.has(int(s)):
			l.count(s) // for good: a word has one set
		}
		l.bytes += bits.OnesCount8(m &^ p.mask[w])
		p.mask[w] |= m
		addr, n = addr+uint64(k), n-k
	}
}

func (l *live) count(s alias.Set) {
	for int(s) >= len(l.counts) {
		l.counts = append(l.counts, 0)
	}
	l.counts[s]++
	l.sets.set(int(s))
}

// kill says that n bytes are written, and tells whether one was live.
func (l *live) kill(addr uint64, n int) bool {
	if l.bytes == 0 {
		return false
	}
	hit := false
	for n > 0 {
		m, k := byteMask(addr, n)
		if p := l.page(addr); p != nil {
			w := addr >> 3 % pageWords
			if p.mask[w]&m != 0 {
				hit = true
				l.bytes -= bits.OnesCount8(m & p.mask[w])
				if p.mask[w] &^= m; p.mask[w] == 0 {
					l.drop(p.set[w])
				}
			}
		} else if n >= 1<<pageShift {
			k = min(n, 1<<pageShift-int(addr&(1<<pageShift-1)))
		}
		addr, n = addr+uint64(k), n-k
	}
	return hit
}

func (l *live) drop(s alias.Set) {
	if l.counts[s]--; l.counts[s] == 0 {
		l.sets.clear(int(s))
	}
}

// bitset is a set of small numbers.
type bitset []uint64

func (b *bitset) set(n int) {
	for n/64 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

func (b bitset) clear(n int) { b[n/64] &^= 1 << (n % 64) }

func (b bitset) has(n int) bool { return n/64 < len(b) && b[n/64]>>(n%64)&1 != 0 }

// sparse is a set of few small numbers: the words of a bitset that are not empty.
type sparse []sparseWord

type sparseWord struct {
	at   int
	bits uint64
}

// set adds a number that is not before those that are in the set.
func (s *sparse) set(n int) {
	if k := len(*s); k == 0 || (*s)[k-1].at != n/64 {
		*s = append(*s, sparseWord{at: n / 64})
	}
	(*s)[len(*s)-1].bits |= 1 << (n % 64)
}

// meets tells whether a number is in both.
func (s sparse) meets(b bitset) bool {
	for _, w := range s {
		if w.at < len(b) && b[w.at]&w.bits != 0 {
			return true
		}
	}
	return false
}
