package slice

import (
	"math/bits"

	"github.com/heddle-dmt/heddle/analyses/alias"
)

// liveMemory is the memory that the slice reads later: bytes, with the sets of the loads
// that read them.
type liveMemory struct {
	pages map[uint64]*livePage
	last  *livePage
	at    uint64
	// counts is the number of live words of each set, and higher if the set stays.
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
	// thread is the one that reads a word, and until the position of the last instruction that does.
	thread [pageWords]int32
	until  [pageWords]int
}

func newLiveMemory() *liveMemory { return &liveMemory{pages: map[uint64]*livePage{}, at: ^uint64(0)} }

// lookupPage returns a page, nil if nothing in it was ever live.
func (l *liveMemory) lookupPage(addr uint64) *livePage {
	if n := addr >> pageShift; n != l.at {
		l.at, l.last = n, l.pages[n]
	}
	return l.last
}

func (l *liveMemory) ensurePage(addr uint64) *livePage {
	p := l.lookupPage(addr)
	if p == nil {
		p = &livePage{}
		l.pages[addr>>pageShift] = p
		l.last = p
	}
	return p
}

// byteMask returns the bytes of a word from an address on, at most n, and their number.
func byteMask(addr uint64, n int) (uint8, int) {
	from := int(addr & 7)
	k := min(8-from, n)
	return uint8((1<<k - 1) << from), k
}

// anyLive reports whether one of n bytes is live.
func (l *liveMemory) anyLive(addr uint64, n int) bool { return l.isReadFrom(addr, n, 0, -1) }

// isReadFrom reports whether an instruction of a thread at or after a position, or one of another thread, reads one of n
// bytes.
func (l *liveMemory) isReadFrom(addr uint64, n, thread, at int) bool {
	if l.bytes == 0 {
		return false
	}
	for n > 0 {
		m, k := byteMask(addr, n)
		w := addr >> 3 % pageWords
		if p := l.lookupPage(addr); p != nil && p.mask[w]&m != 0 && p.usedUntil(w, thread) >= at {
			return true
		}
		addr, n = addr+uint64(k), n-k
	}
	return false
}

// usedUntil is the position of the last instruction of a thread that reads a word; noPosition: another thread reads it.
func (p *livePage) usedUntil(w uint64, thread int) int {
	if int(p.thread[w]) != thread {
		return noPosition
	}
	return p.until[w]
}

// addBytes makes n bytes live that a load of a set reads, at a position of a thread.
func (l *liveMemory) addBytes(addr uint64, n int, s alias.Set, thread, at int) {
	for n > 0 {
		m, k := byteMask(addr, n)
		p, w := l.ensurePage(addr), addr>>3%pageWords
		switch {
		case p.mask[w] == 0:
			p.set[w] = s
			l.countSet(s)
		case p.set[w] != s && !l.sets.has(int(s)):
			l.countSet(s) // stays: a word holds one set
		}
		if p.mask[w] == 0 {
			p.thread[w], p.until[w] = int32(thread), at
		} else {
			p.until[w] = max(at, p.usedUntil(w, thread))
		}
		l.bytes += bits.OnesCount8(m &^ p.mask[w])
		p.mask[w] |= m
		addr, n = addr+uint64(k), n-k
	}
}

func (l *liveMemory) countSet(s alias.Set) {
	for int(s) >= len(l.counts) {
		l.counts = append(l.counts, 0)
	}
	l.counts[s]++
	l.sets.set(int(s))
}

// killBytes records a write of n bytes by a thread. If one was live, it returns the position of the thread's last instruction
// that reads it; noPosition: another thread does.
func (l *liveMemory) killBytes(addr uint64, n, thread int) (until int, hit bool) {
	if l.bytes == 0 {
		return 0, false
	}
	for n > 0 {
		m, k := byteMask(addr, n)
		if p := l.lookupPage(addr); p != nil {
			w := addr >> 3 % pageWords
			if p.mask[w]&m != 0 {
				hit, until = true, max(until, p.usedUntil(w, thread))
				l.bytes -= bits.OnesCount8(m & p.mask[w])
				if p.mask[w] &^= m; p.mask[w] == 0 {
					l.dropSet(p.set[w])
				}
			}
		} else if n >= 1<<pageShift {
			k = min(n, 1<<pageShift-int(addr&(1<<pageShift-1)))
		}
		addr, n = addr+uint64(k), n-k
	}
	return until, hit
}

func (l *liveMemory) dropSet(s alias.Set) {
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

// sparseSet is a set of few small numbers: the words of a bitset that are not empty.
type sparseSet []sparseWord

type sparseWord struct {
	at   int
	bits uint64
}

// append adds a number that is not below those in the set.
func (s *sparseSet) append(n int) {
	if k := len(*s); k == 0 || (*s)[k-1].at != n/64 {
		*s = append(*s, sparseWord{at: n / 64})
	}
	(*s)[len(*s)-1].bits |= 1 << (n % 64)
}

// intersects reports whether a number is in both sets.
func (s sparseSet) intersects(b bitset) bool {
	for _, w := range s {
		if w.at < len(b) && b[w.at]&w.bits != 0 {
			return true
		}
	}
	return false
}
