package strangers

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/heddle-dmt/heddle/experiments/sweep"
	"github.com/heddle-dmt/heddle/internal/job"
)

// make makes the files of a recipe in a folder.
func (r Recipe) make(ctx context.Context, b *budget, dir string, size job.Size, seed int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		in := sweep.Input{Name: name, Generate: r.Files[name], Size: size, Seed: uint64(seed)}
		if err := in.MakeFile(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if r.Script == "" {
		return nil
	}
	p := &process{Args: []string{"sh", "-euc", r.Script}, Dir: dir, Env: []string{
		fmt.Sprintf("SEED=%d", seed), fmt.Sprintf("SIZE=%d", uint64(size)),
	}}
	if err := b.run(ctx, p); err != nil {
		return err
	}
	if p.status != 0 {
		return errRecipe.New(p.status, firstLines(p.stderr))
	}
	return nil
}
