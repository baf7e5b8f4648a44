package flows

import (
	"slices"
	"testing"
)

// Pieces of a flow are put in any order and again; a copy is its own.
func TestFlows(t *testing.T) {
	d := Direction{1, 0}
	pieces := []Piece{{Direction: d, At: 3, Bytes: []byte("lo")}, {Direction: d, Bytes: []byte("hel")}, {Direction: d, Ends: true}, {Direction: d, At: 3, Bytes: []byte("lo")}}
	f, g := Contents{}, Contents{}
	for i := range pieces {
		f.Add(&pieces[i])
		g.Add(&pieces[len(pieces)-1-i])
	}
	if x := f[d]; string(x.Bytes) != "hello" || !slices.Equal(x.Ends, []uint64{3, 5}) || !x.Closed || !f.Equal(g) {
		t.Errorf("%+v, and backwards %+v", x, g[d])
	}
	c := f.Clone()
	c.Add(&Piece{Direction: d, At: 0, Bytes: []byte("j")})
	if string(f[d].Bytes) != "hello" || f.Equal(c) {
		t.Errorf("a copy changes %q", f[d].Bytes)
	}
}
