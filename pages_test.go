package heddle_test

import (
	"fmt"
	"testing"

	"github.com/heddle-dmt/heddle/memmodel/buffers"
)

// TestPagesShowTSO: what TSO forbids never happens with the engine that works by
// pages, and what it allows does, unless stores are committed eagerly.
func TestPagesShowTSO(t *testing.T) {
	bin := compile(t, ordering)
	for _, policy := range buffers.Policies() {
		for seed := range uint64(3) {
			c, out := config(t, bin)
			c.Cores, c.Sched, c.Seed = 2, fine, seed
			c.Memory = buffers.Options{Model: "tso", Engine: "pages", Commit: policy, Rate: 0.05}
			run(t, c)
			var sb, mp, fenced, coherence int
			if _, err := fmt.Sscanf(out.String(), "sb %d mp %d fenced %d coherence %d", &sb, &mp, &fenced, &coherence); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			if mp > 0 || fenced > 0 || coherence > 0 {
				t.Errorf("%s, seed %d: what TSO forbids: %s", policy, seed, out)
			}
			if policy != "eager" && sb == 0 {
				t.Errorf("%s, seed %d: never what TSO allows: %s", policy, seed, out)
			}
			t.Log(policy, seed, out)
		}
	}
}
