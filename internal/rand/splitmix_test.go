package rand

import "testing"

// TestSplitMixIsThePublishedSequence compares the generator with the first numbers that the
// reference implementation draws (S. Vigna, splitmix64.c) for the seeds 0 and 1234567.
func TestSplitMixIsThePublishedSequence(t *testing.T) {
	for seed, numbers := range map[SplitMix][]uint64{
		0:       {0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f},
		1234567: {6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821},
	} {
		state := seed
		for i, want := range numbers {
			if got := state.Uint64(); got != want {
				t.Errorf("seed %d: number %d is %d, want %d", seed, i, got, want)
			}
		}
	}
}

// TestSplitMixRanges: 0xe220a8397b1dcdaf, the first number of seed 0, is 0.883... of 2^64, and
// its remainder by 10 is 5.
func TestSplitMixRanges(t *testing.T) {
	var high, remainder, certain, never SplitMix
	if n := high.Below(100); n != 88 {
		t.Errorf("0.883 of 100 is %d, want 88", n)
	}
	if n := remainder.Remainder(10); n != 5 {
		t.Errorf("the remainder is %d, want 5", n)
	}
	if !certain.Chance(NewShare(1)) || never.Chance(NewShare(0)) || !new(SplitMix).Chance(NewShare(0.884)) || new(SplitMix).Chance(NewShare(0.883)) {
		t.Error("events happen that have no chance, or certain ones do not")
	}
}
