package alias

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// content is one concrete content of a word: a number, or an address of a region.
type content struct {
	region int
	offset int64
}

// sampleRegions are the regions of the addresses that a test draws.
const sampleRegions = 3

// drawValue draws a value, and some of its contents. A value that may be anything has numbers and
// addresses of all regions.
func drawValue(r *rand.Rand) (Value, []content) {
	if r.IntN(5) == 0 {
		list := []content{{numberRegion, 0}, {numberRegion, 17}}
		for region := range sampleRegions {
			list = append(list, content{region, 24})
		}
		return topValue, list
	}
	var v Value
	var list []content
	for region := numberRegion; region < sampleRegions; region++ {
		if r.IntN(2) == 0 {
			continue
		}
		at := drawInterval(r)
		v.parts = append(v.parts, valuePart{region, at})
		for _, x := range intervalMembers(at) {
			list = append(list, content{region, x})
		}
	}
	return v, list
}

// mayBe reports whether a value has a content.
func (v Value) mayBe(c content) bool {
	return v.isTop || slices.ContainsFunc(v.parts, func(p valuePart) bool { return p.region == c.region && hasMember(p.at, c.offset) })
}

// TestSumsAndDifferences expects the sum of a number and a number or an address, in both orders, and
// the difference of a number or address and a number, in the values that addValues and subtractValues
// return. The difference of two addresses of one region is the number of bytes between them.
func TestSumsAndDifferences(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 20000 {
		v, contents := drawValue(r)
		w, others := drawValue(r)
		sum, difference := addValues(v, w), subtractValues(v, w)
		for _, x := range contents {
			for _, y := range others {
				if x.region == numberRegion || y.region == numberRegion {
					if want := (content{max(x.region, y.region), x.offset + y.offset}); !sum.mayBe(want) {
						t.Fatalf("%v + %v = %v, which lacks %v", v, w, sum, want)
					}
				}
				if y.region == numberRegion && !difference.mayBe(content{x.region, x.offset - y.offset}) ||
					y.region == x.region && !difference.mayBe(content{numberRegion, x.offset - y.offset}) {
					t.Fatalf("%v - %v = %v, which lacks %v - %v", v, w, difference, x, y)
				}
			}
		}
	}
}

// TestSumsArePrecise lists sums and differences of which the regions and bounds must be known.
func TestSumsArePrecise(t *testing.T) {
	eight := numberValue(Exactly(8))
	array := pointerValue(1, Range(0, 64))
	other := pointerValue(2, Exactly(16))
	orNull := joinValues(array, numberValue(Exactly(0)))
	for _, c := range []struct {
		name string
		got  Value
		want string
	}{
		{"address + number", addValues(array, eight), "1:8..72/1"},
		{"number + address", addValues(eight, array), "1:8..72/1"},
		{"address or null + number", addValues(orNull, eight), "-1:8 1:8..72/1"},
		{"address + anything: a number is added", addValues(array, topValue), "1:*"},
		{"address or null + anything", addValues(orNull, topValue), "?"},
		{"anything + number", addValues(topValue, eight), "?"},
		{"address or null + other address or null", addValues(orNull, joinValues(other, numberValue(Exactly(0)))), "-1:0 1:0..64/1 2:16"},
		{"address + other address, which C does not have", addValues(array, other), "1:* 2:*"},
		{"address + no value", addValues(array, Value{}), "-"},
		{"address - number", subtractValues(array, eight), "1:-8..56/1"},
		{"address - address", subtractValues(array, other), "-1:*"},
		{"address - address or null", subtractValues(array, joinValues(other, numberValue(Exactly(0)))), "-1:* 1:0..64/1"},
		{"number - address", subtractValues(eight, array), "-1:*"},
		{"anything - address", subtractValues(topValue, array), "-1:*"},
		{"anything - address or null", subtractValues(topValue, orNull), "?"},
		{"address - anything", subtractValues(array, topValue), "-1:* 1:*"},
		{"number - anything", subtractValues(eight, topValue), "-1:*"},
	} {
		if got := fmt.Sprint(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
