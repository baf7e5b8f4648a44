package mem

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// The model of an address space is a Go map.
type (
	modelPage  struct{ data [arch.PageSize]byte }
	modelEntry struct {
		page   *modelPage // nil: the page of zeros
		perm   arch.Perm
		shared bool
	}
	modelSpace map[arch.Addr]modelEntry
)

func (m modelSpace) sortedAddrs() []arch.Addr {
	return slices.SortedFunc(maps.Keys(m), cmp.Compare)
}

// content returns the content of an entry.
func (e modelEntry) content() []byte {
	if e.page == nil {
		return make([]byte, arch.PageSize)
	}
	return e.page.data[:]
}

// pair is a space with its model.
type pair struct {
	space *Space
	model modelSpace
}

// clonePair clones the space and the model.
func (p pair) clonePair() pair { return pair{p.space.Clone(), maps.Clone(p.model)} }

// machine is a RAM with a model of its spaces.
type machine struct {
	ram   *RAM
	pairs []pair
	// The first fixed pairs stay unchanged, and their pages count as base.
	fixed int
	base  int
	// private excludes shared entries.
	private bool
}

// countOwners returns the number of entries of a page.
func (m *machine) countOwners(p *modelPage) int {
	n := 0
	for _, pair := range m.pairs {
		for _, e := range pair.model {
			if e.page == p {
				n++
			}
		}
	}
	return n
}

// Addresses around the borders of page table nodes, so that operations cross them.
var borders = []arch.Addr{0, 2 << 20, 1 << 30, 512 << 30, arch.UserEnd}

func drawAddr(t *rapid.T, label string) arch.Addr {
	border := rapid.SampledFrom(borders).Draw(t, label+" border")
	page := rapid.IntRange(-6, 6).Draw(t, label+" page")
	va := int64(border) + int64(page)*arch.PageSize
	return arch.Addr(min(max(va, 0), arch.UserEnd-arch.PageSize))
}

// drawRange draws a range that may span many nodes.
func drawRange(t *rapid.T) (start, end arch.Addr) {
	a, b := drawAddr(t, "start"), drawAddr(t, "end")
	return min(a, b), max(a, b) + arch.PageSize
}

func drawPerm(t *rapid.T) arch.Perm {
	return arch.Perm(rapid.IntRange(0, 7).Draw(t, "perm"))
}

func (m *machine) drawPair(t *rapid.T) pair {
	return m.pairs[rapid.IntRange(m.fixed, len(m.pairs)-1).Draw(t, "space")]
}

// setPage puts a new page with random content.
func (m *machine) setPage(t *rapid.T) {
	p, va := m.drawPair(t), drawAddr(t, "address")
	page, ok := m.ram.Alloc()
	if !ok {
		t.Skip("full")
	}
	e := modelEntry{new(modelPage), drawPerm(t), rapid.Bool().Draw(t, "shared") && !m.private}
	copy(e.page.data[:], rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "content"))
	copy(m.ram.Bytes(page), e.page.data[:])
	p.space.Set(va, MakePTE(page, e.perm, e.shared))
	p.model[va] = e
}

// aliasPage puts a page that some space already has.
func (m *machine) aliasPage(t *rapid.T) {
	from, to, va := m.drawPair(t), m.drawPair(t), drawAddr(t, "address")
	if len(from.model) == 0 {
		t.Skip("empty")
	}
	at := rapid.SampledFrom(from.model.sortedAddrs()).Draw(t, "source")
	e := from.model[at]
	e.perm = drawPerm(t)
	e.shared = e.shared && e.page != nil
	page := from.space.Get(at).Page()
	m.ram.Ref(page)
	to.space.Set(va, MakePTE(page, e.perm, e.shared))
	to.model[va] = e
}

func (m *machine) fillWithZeros(t *rapid.T) {
	p, start, perm := m.drawPair(t), drawAddr(t, "address"), drawPerm(t)
	end := min(start+arch.Addr(rapid.IntRange(1, 8).Draw(t, "pages"))*arch.PageSize, arch.UserEnd)
	if !p.space.FillZero(start, end, perm) {
		t.Fatal("no room")
	}
	for va := start; va < end; va += arch.PageSize {
		if _, ok := p.model[va]; !ok {
			p.model[va] = modelEntry{nil, perm, false}
		}
	}
}

func (m *machine) unmapRange(t *rapid.T) {
	p := m.drawPair(t)
	start, end := drawRange(t)
	p.space.Unmap(start, end)
	maps.DeleteFunc(p.model, func(va arch.Addr, _ modelEntry) bool { return start <= va && va < end })
}

func (m *machine) protectRange(t *rapid.T) {
	p, perm := m.drawPair(t), drawPerm(t)
	start, end := drawRange(t)
	p.space.Protect(start, end, perm)
	for va, e := range p.model {
		if start <= va && va < end {
			e.perm = perm
			p.model[va] = e
		}
	}
}

func (m *machine) moveRange(t *rapid.T) {
	p := m.drawPair(t)
	from, to := drawAddr(t, "from"), drawAddr(t, "to")
	size := arch.Addr(rapid.IntRange(1, 5).Draw(t, "pages")) * arch.PageSize
	if from+size > arch.UserEnd || to+size > arch.UserEnd || from < to+size && to < from+size {
		t.Skip("overlap")
	}
	p.space.Unmap(to, to+size)
	p.space.Move(from, to, uint64(size))
	for off := arch.Addr(0); off < size; off += arch.PageSize {
		delete(p.model, to+off)
		if e, ok := p.model[from+off]; ok {
			p.model[to+off] = e
			delete(p.model, from+off)
		}
	}
}

func (m *machine) cloneSpace(t *rapid.T) {
	if len(m.pairs) > 5 {
		t.Skip("there are as many spaces as the test takes")
	}
	m.pairs = append(m.pairs, m.drawPair(t).clonePair())
}

func (m *machine) releaseSpace(t *rapid.T) {
	if len(m.pairs) == m.fixed+1 {
		t.Skip("the last")
	}
	i := rapid.IntRange(m.fixed, len(m.pairs)-1).Draw(t, "space")
	m.pairs[i].space.Release()
	m.pairs[i].space.Release() // has no effect
	m.pairs = slices.Delete(m.pairs, i, i+1)
}

// writeBytes writes as the guest does, across pages.
func (m *machine) writeBytes(t *rapid.T) {
	p := m.drawPair(t)
	va := drawAddr(t, "address") + arch.Addr(rapid.IntRange(0, arch.PageSize-1).Draw(t, "offset"))
	b := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 16).Draw(t, "bytes"), rapid.SampledFrom([]int{1, 300, 600}).Draw(t, "times"))
	n, why := p.space.WriteAt(b, va)
	want, wantWhy := m.writeModel(p.model, b, va)
	if n != want || why != wantWhy {
		t.Fatalf("write of %d bytes at %#x: %d, %v, want %d, %v", len(b), va, n, why, want, wantWhy)
	}
}

func (m *machine) writeModel(s modelSpace, b []byte, va arch.Addr) (int, arch.FaultKind) {
	for done := 0; done < len(b); {
		at := va + arch.Addr(done)
		page := at &^ (arch.PageSize - 1)
		e, ok := s[page]
		switch {
		case !ok:
			return done, arch.Absent
		case e.perm&arch.Write == 0:
			return done, arch.Denied
		case !e.shared && (e.page == nil || m.countOwners(e.page) > 1):
			fresh := new(modelPage)
			copy(fresh.data[:], e.content())
			e.page = fresh
			s[page] = e
		}
		done += copy(e.page.data[at-page:], b[done:])
	}
	return len(b), arch.NoFault
}

func (m *machine) readBytes(t *rapid.T) {
	p := m.drawPair(t)
	va := drawAddr(t, "address") + arch.Addr(rapid.IntRange(0, arch.PageSize-1).Draw(t, "offset"))
	b := make([]byte, rapid.IntRange(1, 3*arch.PageSize).Draw(t, "bytes"))
	n, why := p.space.ReadAt(b, va)
	var want []byte
	wantWhy := arch.NoFault
	for len(want) < len(b) {
		at := va + arch.Addr(len(want))
		e, ok := p.model[at&^(arch.PageSize-1)]
		if !ok {
			wantWhy = arch.Absent
			break
		}
		if e.perm&arch.Read == 0 {
			wantWhy = arch.Denied
			break
		}
		rest := e.content()[at%arch.PageSize:]
		want = append(want, rest[:min(len(rest), len(b)-len(want))]...)
	}
	if n != len(want) || why != wantWhy || !bytes.Equal(b[:n], want) {
		t.Fatalf("read of %d bytes at %#x: %d, %v, want %d, %v", len(b), va, n, why, len(want), wantWhy)
	}
	s, sWhy := p.space.ReadString(b, va)
	if i := bytes.IndexByte(want, 0); i >= 0 {
		want, wantWhy = want[:i+1], arch.NoFault
	}
	if s != len(want) || sWhy != wantWhy || !bytes.Equal(b[:s], want) {
		t.Fatalf("string at %#x: %d bytes, %v, want %d, %v", va, s, sWhy, len(want), wantWhy)
	}
}

// compareSpaces compares two spaces, neither of which need be a clone of the other.
func (m *machine) compareSpaces(t *rapid.T) {
	before, after := m.drawPair(t), m.drawPair(t)
	var got, want []arch.Addr
	for _, c := range after.space.Changed(before.space) {
		if c.PTE != after.space.Get(c.Addr) {
			t.Fatalf("%#x changed to %#x, but has %#x", c.Addr, c.PTE, after.space.Get(c.Addr))
		}
		got = append(got, c.Addr)
	}
	union := maps.Clone(before.model)
	maps.Copy(union, after.model)
	for _, va := range union.sortedAddrs() {
		if before.model[va].page != after.model[va].page {
			want = append(want, va)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("changed: %#x, want %#x", got, want)
	}
}

// checkAll compares everything with the model.
func (m *machine) checkAll(t *rapid.T) {
	pages := map[*modelPage]bool{}
	for _, p := range m.pairs {
		start := arch.Addr(0)
		var got []arch.Addr
		for _, mapping := range p.space.Mappings(start, arch.UserEnd) {
			got = append(got, mapping.Addr)
		}
		if !slices.Equal(got, p.model.sortedAddrs()) {
			t.Fatalf("entries at %#x, want %#x", got, p.model.sortedAddrs())
		}
		zeros := uint64(0)
		for va, e := range p.model {
			pte := p.space.Get(va)
			if !pte.Present() || pte.Perm() != e.perm || pte.Shared() != e.shared || (pte.Page() == ZeroPage) != (e.page == nil) {
				t.Fatalf("entry %#x at %#x, want %+v", pte, va, e.perm)
			}
			if !bytes.Equal(m.ram.Bytes(pte.Page()), e.content()) {
				t.Fatalf("other bytes at %#x", va)
			}
			if e.page == nil {
				zeros++
			} else {
				pages[e.page] = true
			}
		}
		if p.space.Resident() != uint64(len(p.model)) || p.space.Zeros() != zeros {
			t.Fatalf("%d resident, %d zeros, want %d, %d", p.space.Resident(), p.space.Zeros(), len(p.model), zeros)
		}
		if used := p.space.Resident() - zeros; p.space.PeakUsed() < used {
			t.Fatalf("peak %d below %d", p.space.PeakUsed(), used)
		}
	}
	if m.base > 0 {
		for _, p := range m.pairs[:m.fixed] {
			for _, e := range p.model {
				delete(pages, e.page)
			}
		}
	}
	if want := uint64(m.base + len(pages)); m.ram.Used() != want {
		t.Fatalf("%d pages are used, want %d", m.ram.Used(), want)
	}
}

// TestSpaceAgreesWithMap runs random operations on spaces, their clones and
// clones of clones, and on maps.
func TestSpaceAgreesWithMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ram, err := NewRAM(1024 * arch.PageSize)
		if err != nil {
			t.Fatal(err)
		}
		defer ram.Close()
		m := &machine{ram: ram, pairs: []pair{{NewSpace(ram), modelSpace{}}}}
		t.Repeat(map[string]func(*rapid.T){
			"set": m.setPage, "alias": m.aliasPage, "fillZero": m.fillWithZeros, "unmap": m.unmapRange, "protect": m.protectRange,
			"move": m.moveRange, "clone": m.cloneSpace, "release": m.releaseSpace, "write": m.writeBytes, "read": m.readBytes,
			"diff": m.compareSpaces, "": m.checkAll,
		})
		for _, p := range m.pairs {
			p.space.Release()
		}
		checkGivenBack(t, ram)
	})
}

// TestVersionTellsChanges: a translation that was kept together with the space's version must not
// be used after a change.
func TestVersionTellsChanges(t *testing.T) {
	ram := newRAM(t, 1<<20)
	s := NewSpace(ram)
	defer func() { s.Release() }()
	const va = 0x1000
	seen := map[uint64]bool{}
	step := func(what string, change func()) {
		t.Helper()
		change()
		version := uint64(s.c.version)
		if seen[version] {
			t.Errorf("after %s the version is one that was before", what)
		}
		seen[version] = true
	}
	seen[uint64(s.c.version)] = true
	s.FillZero(va, va+arch.PageSize, arch.Read|arch.Write)
	step("a write to the page of zeros", func() { s.WriteAt([]byte{1}, va) })
	step("protect", func() { s.Protect(va, va+arch.PageSize, arch.Read|arch.Write|arch.Exec) })
	var c *Space
	step("clone", func() { c = s.Clone() })
	step("a copying write", func() { s.WriteAt([]byte{2}, va) })
	step("unmap", func() { s.Unmap(va, va+arch.PageSize) })
	step("another space in its place", func() { s.Release(); s = NewSpace(ram) })
	step("a clone in its place", func() { s.Release(); s = c })
}

// TestCodeTellsRemappedCode: blocks of code that were kept with the space's code number must not be
// used when an address may have other code.
func TestCodeTellsRemappedCode(t *testing.T) {
	ram := newRAM(t, 1<<20)
	s := NewSpace(ram)
	defer s.Release()
	page := func() PTE {
		p, _ := ram.Alloc()
		return MakePTE(p, arch.Read|arch.Exec, false)
	}
	const va = 0x1000
	s.Set(va, page())
	last := s.c.code
	for _, change := range []func(){
		func() { s.Set(va, page()) },
		func() {
			s.Protect(va, va+arch.PageSize, arch.Read)
			s.Set(va, page())
			s.Protect(va, va+arch.PageSize, arch.Read|arch.Exec)
		},
		func() { s.Protect(va, va+arch.PageSize, 0); s.Unmap(va, va+arch.PageSize); s.Set(va, page()) },
	} {
		if change(); s.c.code == last {
			t.Error("other code under the same number")
		}
		last = s.c.code
	}
}

// TestFullTables expects page tables to count against the limit.
func TestFullTables(t *testing.T) {
	ram := newRAM(t, 64*arch.PageSize)
	s := NewSpace(ram)
	defer s.Release()
	filled := 0
	for va := arch.Addr(0); s.FillZero(va, va+arch.PageSize, arch.Read); va += 2 << 20 {
		if filled++; filled > 64 {
			t.Fatal("page tables without bound")
		}
	}
	if filled < 50 {
		t.Errorf("only %d tables", filled)
	}
	if _, ok := ram.Alloc(); ok {
		t.Error("a page beyond the limit")
	}
}

// TestMoveCostsWhatThereIs moves a huge empty range.
func TestMoveCostsWhatThereIs(t *testing.T) {
	ram := newRAM(t, 1<<20)
	s := NewSpace(ram)
	defer s.Release()
	s.FillZero(1<<40+arch.PageSize, 1<<40+2*arch.PageSize, arch.Read)
	s.Move(1<<40, 1<<45, 1<<40)
	if got := s.Mappings(0, arch.UserEnd); len(got) != 1 || got[0].Addr != 1<<45+arch.PageSize {
		t.Errorf("entries %+v", got)
	}
}

// BenchmarkWriteAfterClone measures the cost of the first write to a page after a snapshot.
func BenchmarkWriteAfterClone(b *testing.B) {
	ram := newRAM(b, 1<<30)
	s := NewSpace(ram)
	defer s.Release()
	const size = 64 << 20
	s.FillZero(0, size, arch.Read|arch.Write)
	for va := arch.Addr(0); va < size; va += arch.PageSize {
		s.WriteAt([]byte{1}, va)
	}
	old := s.Clone()
	var at arch.Addr
	for b.Loop() {
		if at == size {
			at = 0
			old.Release()
			old = s.Clone()
		}
		s.WriteAt([]byte{2}, at)
		at += arch.PageSize
	}
	old.Release()
}

func BenchmarkClone(b *testing.B) {
	ram := newRAM(b, 1<<30)
	s := NewSpace(ram)
	defer s.Release()
	s.FillZero(0, 256<<20, arch.Read|arch.Write)
	for b.Loop() {
		s.Clone().Release()
	}
}
