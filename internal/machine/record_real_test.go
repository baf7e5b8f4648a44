package machine_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
)

// realPrograms are programs of Debian, as they come.
func realPrograms(t *testing.T, dir string) map[string][]string {
	t.Helper()
	data := filepath.Join(dir, "data")
	if err := os.WriteFile(data, []byte(strings.Repeat("some text that compresses, more or less; ", 3000)), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string][]string{
		"pbzip2": {"pbzip2", "-c", "-k", "-b1", "-p4", data},
		"sh":     {"sh", "-c", "sort " + data + " | uniq -c | tr a-z A-Z; ls / | wc -l; date +%s; kill -9 $$"},
		"python3": {"python3", "-c", `
import os, threading, time
a, b = os.pipe()
counts = []
def work(n):
    for i in range(50):
        counts.append(n)
        if i % 10 == 0: time.sleep(0.0001)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads: t.start()
for t in threads: t.join()
os.write(b, b"through a pipe")
print(counts, time.time(), os.urandom(4).hex(), os.read(a, 100), hash("x"))
`},
	}
}

// allButMemory asks for all recordings but the slow one, which has tests with
// real programs of its own, and which the engine of pages does not have.
func allButMemory(to io.Writer) *machine.Record {
	r := everything(to)
	r.Memory = nil
	return r
}

// TestRealProgramsReplay: programs as they are installed give the same result
// not recorded, recorded, and replayed with nothing and with much recorded.
func TestRealProgramsReplay(t *testing.T) {
	dir := t.TempDir()
	for name, args := range realPrograms(t, dir) {
		for _, cores := range []int{1, 4} {
			if cores == 1 && name == "python3" || testing.Short() && (cores == 1 || name == "python3") {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, cores), func(t *testing.T) {
				c, out := machinetest.Config(t, args...)
				c.Dir, c.Cores, c.Seed = dir, cores, uint64(cores*17)
				plain := machinetest.Run(t, c)
				want := out.String()
				if plain.Outcome != "exit" && name != "sh" {
					t.Fatalf("%s: %s", plain.Outcome, plain.Message)
				}
				recorded, path := record(t, c, allButMemory)
				if recorded.Digest != plain.Digest {
					t.Errorf("recorded: %s, not recorded: %s", recorded.Digest, plain.Digest)
				}
				for _, again := range []*machine.Record{nil, allButMemory(traceFile(t))} {
					r, text := replayed(t, path, func(c *machine.Config) { c.Record = again })
					machinetest.CompareResults(t, r, plain)
					if text != want {
						t.Errorf("the replay printed %d bytes that differ from %d", len(text), len(want))
					}
				}
			})
		}
	}
}
