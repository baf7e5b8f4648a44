package slice_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// figure9 are the two programs of PEREGRINE's figure 9, and one whose threads do the same
// to variables of their own.
var figure9 = map[string]struct {
	first, second string
	want          []string // kept of all threads: all of these
	any           bool     // or one of these
}{
	"a": {"a[in[0] & 7]++;", "a[in[1] & 7] = 0;", []string{"atoi(argv[1])", "atoi(argv[2])"}, false},
	"b": {"if (in[0] == 0) a[0]++;", "if (in[1] == 0) a[0] = 0;", []string{"atoi(argv[1]) ≠ 0", "atoi(argv[2]) ≠ 0"}, true},
	"c": {"if (in[0] == 0) a[0]++;", "if (in[1] == 0) b[0] = 0;", nil, false},
}

const twoThreads = `#include <pthread.h>
#include <stdlib.h>
static int in[2];
volatile int a[8], b[8];
static void *first(void *p) { FIRST return p; }
static void *second(void *p) { SECOND return p; }
int main(int argc, char **argv) {
  pthread_t t[2];
  for (int i = 0; i < 2; i++) in[i] = atoi(argv[i + 1]);
  pthread_create(&t[0], NULL, first, NULL);
  pthread_create(&t[1], NULL, second, NULL);
  pthread_join(t[0], NULL);
  pthread_join(t[1], NULL);
  return 0;
}
`

// Races that did not happen but that other inputs cause are excluded, and nothing else.
func TestFigure9(t *testing.T) {
	for name, f := range figure9 {
		source := filepath.Join(t.TempDir(), name+".c")
		text := strings.NewReplacer("FIRST", f.first, "SECOND", f.second).Replace(twoThreads)
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		bin := gcctest.File(t, source, "-fno-inline", "-no-pie")
		_, texts := sliced(record(t, config(t, bin, "3", "5"), arguments), slice.Simplified)
		kept := slices.Concat(texts...)
		found := 0
		for _, want := range f.want {
			if slices.ContainsFunc(kept, func(k string) bool { return strings.Contains(k, want) }) {
				found++
			}
		}
		if f.any && found == 0 || !f.any && found < len(f.want) || f.want == nil && len(kept) > 0 {
			t.Errorf("(%s): kept %q, want of %q", name, kept, f.want)
		}
	}
}
