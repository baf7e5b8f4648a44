package clap

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// graph is a function of blocks that are named by letters, with the edges of each;
// "." is the end.
func graph(edges ...string) *Function {
	f := &Function{}
	blocks := map[byte]*Block{}
	for i, e := range edges {
		b := &Block{Addr: uint64(i), index: i, lengths: []byte{1}, bytes: 1}
		blocks[e[0]] = b
		f.Blocks = append(f.Blocks, b)
	}
	for _, e := range edges {
		b := blocks[e[0]]
		for _, to := range []byte(e[1:]) {
			if to == '.' {
				b.next = append(b.next, &edge{from: b})
			} else {
				b.next = append(b.next, &edge{from: b, to: blocks[to], addr: blocks[to].Addr})
			}
		}
	}
	f.entryEdges = []*edge{{to: f.Blocks[0]}}
	f.numberEdges()
	f.placeIncrements()
	return f
}

// names are the blocks of a path, as letters from A.
func names(blocks []*Block) string {
	s := ""
	for _, b := range blocks {
		s += string(rune('A' + b.index))
	}
	return s
}

// every calls found with each path of a function, the sum of the numbers of its edges and the
// register's value.
func (f *Function) every(found func(path string, sum, register uint64, enter *edge)) {
	var go_ func(b *Block, path string, sum, register uint64, enter *edge)
	go_ = func(b *Block, path string, sum, register uint64, enter *edge) {
		path += string(rune('A' + b.index))
		for _, e := range b.next {
			if e.endsPath() {
				found(path, sum+e.value, register+e.increment, enter)
			} else {
				go_(e.to, path, sum+e.value, register+e.increment, enter)
			}
		}
	}
	for _, e := range f.entryEdges {
		go_(e.to, "", e.value, e.increment, e)
	}
}

// Figure 1 of Ball and Larus has six paths, with these numbers.
func TestFigure1(t *testing.T) {
	f := graph("ACB", "BCD", "CD", "DFE", "EF", "F.")
	want := map[string]uint64{"ACDF": 0, "ACDEF": 1, "ABCDF": 2, "ABCDEF": 3, "ABDF": 4, "ABDEF": 5}
	found := 0
	f.every(func(path string, sum, register uint64, _ *edge) {
		found++
		if n, ok := want[path]; !ok || n != sum || register != sum {
			t.Errorf("%s: %d, register %d, want %d", path, sum, register, n)
		}
	})
	if found != len(want) || f.Paths != 6 {
		t.Errorf("%d paths, %d by the count", found, f.Paths)
	}
	// A spanning tree of the six blocks has 5 of the 8 inner edges.
	increments := 0
	for _, b := range f.Blocks {
		for _, e := range b.next {
			if e.to != nil && e.increment != 0 {
				increments++
			}
		}
	}
	if increments > 3 {
		t.Errorf("%d edges have an increment", increments)
	}
}

// Invariant 1 on random graphs, by going through all paths: they have the numbers from
// 0 to their count, the register has the number at their end and its part of it on the
// way, and the number gives the path back.
func TestEveryPathHasItsNumber(t *testing.T) {
	loops := 0
	for seed := range uint64(300) {
		f := random(rand.New(rand.NewPCG(seed, 1)))
		seen := map[uint64]bool{}
		f.every(func(path string, sum, register uint64, enter *edge) {
			if sum >= f.Paths || seen[sum] || register != sum {
				t.Fatalf("seed %d: path %s has %d of %d, register %d", seed, path, sum, f.Paths, register)
			}
			seen[sum] = true
			w, err := f.followSum(sum, nil, nil)
			if err != nil || names(w.blocks) != path || w.enter != enter {
				t.Fatalf("seed %d: the number of %s gives %s, %v", seed, path, names(w.blocks), err)
			}
		})
		if uint64(len(seen)) != f.Paths {
			t.Fatalf("seed %d: %d paths, %d by the count", seed, len(seen), f.Paths)
		}
		f.pieces(t, fmt.Sprintf("seed %d", seed))
		loops += len(f.entryEdges) - 1
	}
	if loops < 100 {
		t.Errorf("%d edges go back: the graphs say little", loops)
	}
}

// random is a graph of up to ten blocks.
func random(r *rand.Rand) *Function {
	n := 2 + r.IntN(9)
	var edges []string
	for i := range n {
		e := string(rune('A' + i))
		for k := range r.IntN(3) {
			if to := string(rune('A' + r.IntN(n))); k == 0 || to != e[1:2] {
				e += to
			}
		}
		if i+1 < n && len(e) == 1 {
			e += string(rune('A' + i + 1))
		}
		if len(e) == 1 || r.IntN(4) == 0 {
			e += "."
		}
		edges = append(edges, e)
	}
	return graph(edges...)
}

// pieces demands of all pieces of paths, from any block to any, that the register says
// which blocks they have.
func (f *Function) pieces(t *testing.T, what string) {
	var go_ func(start, b *Block, path string, register uint64)
	go_ = func(start, b *Block, path string, register uint64) {
		path += string(rune('A' + b.index))
		w, err := f.followSum(register+b.potential, start, b)
		if err != nil || names(w.blocks) != path {
			t.Fatalf("%s: the piece %s is read as %v, %v", what, path, w, err)
		}
		for _, e := range b.next {
			if !e.endsPath() {
				go_(start, e.to, path, register+e.increment)
			}
		}
	}
	for _, e := range f.entryEdges {
		go_(nil, e.to, "", e.increment)
	}
	for _, b := range f.Blocks {
		if b.paths > 0 {
			go_(b, b, "", -b.potential)
		}
	}
}

// A chain of diamonds has more paths than numbers: paths end within it.
func TestManyPaths(t *testing.T) {
	f := &Function{}
	add := func() *Block {
		b := &Block{Addr: uint64(len(f.Blocks)), index: len(f.Blocks), lengths: []byte{1}, bytes: 1}
		f.Blocks = append(f.Blocks, b)
		return b
	}
	b := add()
	f.entryEdges = []*edge{{to: b}}
	for range 100 {
		left, right, down := add(), add(), add()
		b.next = []*edge{{from: b, to: left, addr: left.Addr}, {from: b, to: right, addr: right.Addr}}
		left.next, right.next = []*edge{{from: left, to: down, addr: down.Addr}}, []*edge{{from: right, to: down, addr: down.Addr}}
		b = down
	}
	b.next = []*edge{{from: b}}
	f.numberEdges()
	f.placeIncrements()
	if len(f.entryEdges) < 3 || f.Paths > 8*maxPaths {
		t.Errorf("%d begins, %d paths", len(f.entryEdges), f.Paths)
	}
	for n := range uint64(1000) {
		sum := n * (f.Paths / 1000)
		w, err := f.followSum(sum, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		register := w.enter.increment
		for i, b := range w.blocks[1:] {
			register += w.blocks[i].edgeTo(b.Addr).increment
		}
		if register += w.last.increment; register != sum {
			t.Fatalf("path %d has %d in the register", sum, register)
		}
	}
}
