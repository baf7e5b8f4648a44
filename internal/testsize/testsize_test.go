package testsize

import (
	"fmt"
	"testing"
)

// TestSampleTakesTurns: in as many turns as it takes, each is taken as often, and in the
// large size all are.
func TestSampleTakesTurns(t *testing.T) {
	all := []int{0, 1, 2, 3, 4}
	t.Setenv("HEDDLE_LONG", "")
	for n := 1; n <= 5; n++ {
		count := make([]int, 5)
		for turn := range 5 {
			some := Sample(all, n, turn)
			if len(some) != n {
				t.Errorf("%d of %d", len(some), n)
			}
			for _, i := range some {
				count[i]++
			}
		}
		if want := fmt.Sprint([]int{n, n, n, n, n}); fmt.Sprint(count) != want {
			t.Errorf("samples of %d take %v, want %s", n, count, want)
		}
	}
	t.Setenv("HEDDLE_LONG", "1")
	if got := Sample(all, 1, 3); len(got) != 5 || Pick(1, 2, 3) != 3 || !Long() {
		t.Errorf("in the large size: %v, %d", got, Pick(1, 2, 3))
	}
}
