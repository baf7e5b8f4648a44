package trace

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// TestTimelines is invariant 4: after any sequence of appending, flushing,
// marking and returning a reader sees the same as a plain model.
func TestTimelines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		w := NewWriter(&out)
		model := map[Key][]string{}
		permanentBytes := ""
		type saved struct {
			mark  *Mark
			model map[Key][]string
		}
		var marks []saved
		steps := rapid.IntRange(1, 60).Draw(t, "steps")
		for n := range steps {
			switch rapid.IntRange(0, 9).Draw(t, "operation") {
			case 0:
				w.Flush()
			case 1:
				m := saved{w.Mark(), map[Key][]string{}}
				for k, v := range model {
					m.model[k] = slices.Clone(v)
				}
				marks = append(marks, m)
			case 2:
				if len(marks) == 0 {
					continue
				}
				m := rapid.SampledFrom(marks).Draw(t, "mark")
				w.Return(m.mark)
				model = map[Key][]string{}
				for k, v := range m.model {
					model[k] = slices.Clone(v)
				}
			case 3:
				w.ByteStream(Stdin, 0).Append([]byte{byte(n)}, event.Stamp{})
				permanentBytes += string([]byte{byte(n)})
			default:
				key := Key{rapid.SampledFrom([]Kind{Sync, PT}).Draw(t, "kind"), rapid.Uint32Range(0, 2).Draw(t, "id")}
				text := fmt.Sprint("record ", n)
				w.streamOf(key, key.Kind == PT).Append([]byte(text), stampAt(n))
				model[key] = append(model[key], text)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{out.Len(), out.Len() - 1} { // with the index and without
			checkModel(t, out.Bytes()[:size], model, permanentBytes)
		}
	})
}

func checkModel(t *rapid.T, file []byte, model map[Key][]string, stdin string) {
	r, err := NewReader("t", bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for key, want := range model {
		got := []string{}
		if key.Kind == PT {
			all, err := io.ReadAll(r.Bytes(key))
			joined := ""
			for _, s := range want {
				joined += s
			}
			if string(all) != joined || err != nil {
				t.Fatalf("%v: %q, %v; want %q", key, all, err, joined)
			}
			continue
		}
		for record, err := range r.Records(key, Where{}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(record))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v: %q, want %q", key, got, want)
		}
		for n, text := range want {
			if record, ok, err := r.Record(key, uint64(n)); string(record) != text || !ok || err != nil {
				t.Fatalf("%v: record %d is %q, %v, %v", key, n, record, ok, err)
			}
		}
	}
	keys := slices.Collect(maps.Keys(model))
	for _, key := range r.Streams() {
		if key.Kind != Stdin && !slices.Contains(keys, key) {
			t.Fatalf("stream %v is there", key)
		}
	}
	if all, err := io.ReadAll(r.Bytes(Key{Kind: Stdin})); string(all) != stdin || err != nil {
		t.Fatalf("standard input %q, %v, want %q", all, err, stdin)
	}
}
