package storebuffer

import "github.com/heddle-dmt/heddle/internal/rand"

// newCommitRandom returns the random numbers by which stores are committed under a seed: others
// than the scheduler draws for it. The constant is "memmodel" in ASCII.
func newCommitRandom(seed uint64) rand.SplitMix { return rand.SplitMix(seed ^ 0x6d656d6d6f64656c) }
