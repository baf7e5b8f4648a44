package trace

import (
	"bytes"
	"encoding/csv"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// filled returns an event of a kind all of whose fields have values of their
// own.
func filled(kind Kind, seed int64) any {
	e := newEvent(kind)
	fill := reflect.ValueOf(e).Elem()
	fillValue(fill, &seed)
	return e
}

func fillValue(v reflect.Value, seed *int64) {
	*seed++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillValue(v.Field(i), seed)
		}
	case reflect.Bool:
		v.SetBool(*seed%2 == 0)
	case reflect.String:
		v.SetString(strings.Repeat("a \"b\"\n\xff", int(*seed%3)))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt((*seed % 100) - 50)
	case reflect.Uint8:
		v.SetUint(uint64(*seed) % 3)
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*seed) * 7 % 65536)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), int(*seed%3)+1, int(*seed%3)+1))
		for i := range v.Len() {
			fillValue(v.Index(i), seed)
		}
	case reflect.Array:
		for i := range v.Len() {
			fillValue(v.Index(i), seed)
		}
	}
}

// TestEveryFieldIsKept: the binary and the text form of each kind give back all
// fields.
func TestEveryFieldIsKept(t *testing.T) {
	for kind := range kinds {
		for seed := range int64(6) {
			e := filled(kind, seed)
			var b encoder
			eventFields(&b, e)
			back := newEvent(kind)
			if !decodeInto(back, b.b) || !reflect.DeepEqual(back, e) {
				t.Fatalf("%s: binary form gives %+v, want %+v", kind, back, e)
			}
			text := string(recordText(nil, kind, b.b))
			if strings.HasPrefix(text, "bytes") || strings.Contains(text, "\n") {
				t.Fatalf("%s: text form %q", kind, text)
			}
			again, err := parseLine(kind, text)
			if err != nil || !bytes.Equal(again, b.b) {
				t.Fatalf("%s: %q gives %x, %v; want %x", kind, text, again, err, b.b)
			}
		}
	}
}

// TestDumpAndLoad is invariant 5.
func TestDumpAndLoad(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	if err := w.Manifest(map[string]string{"program": "x"}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range sortedKinds() {
		s := w.Stream(kind, 0)
		for seed := range int64(5) {
			var b encoder
			eventFields(&b, filled(kind, seed))
			s.Append(b.b, stampAt(int(seed)))
		}
	}
	w.Stream("other", 3).Append([]byte{0, 1, 2, 0xff}, stampAt(1))
	w.Stream(Sync, 0).Append([]byte("no event"), stampAt(2))
	w.ByteStream(PT, 2).Append(bytes.Repeat([]byte{1, 2, 0x80}, 50), stampAt(3))
	w.ByteStream(Stdin, 0).Append([]byte("some\ninput\n"), stampAt(3))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var text, loaded bytes.Buffer
	if damage := Dump(&text, reader(t, out.Bytes()), DumpOptions{}); len(damage) > 0 {
		t.Fatal(damage)
	}
	if err := Load(&loaded, "text", bytes.NewReader(text.Bytes())); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(loaded.Bytes(), out.Bytes()) {
		t.Errorf("the loaded trace differs; its text is %d bytes:\n%.2000s", text.Len(), text.String())
	}
}

func sortedKinds() []Kind {
	return []Kind{Sideband, Threads, Exits, Syscalls, Signals, Sync, Objects, Inputs, Mappings, Heap, Decisions, Delays, Faults, Clients, Code, Registers, Areas, Files}
}

func TestSortedKindsAreAll(t *testing.T) {
	if len(sortedKinds()) != len(kinds) {
		t.Errorf("%d kinds, want %d", len(sortedKinds()), len(kinds))
	}
}

func TestDumpSelects(t *testing.T) {
	var text bytes.Buffer
	Dump(&text, reader(t, small(t)), DumpOptions{Kinds: []Kind{Sync}, Where: Where{FromSeq: 11, ToSeq: 12}, Events: true})
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "sync 0 seq=11 sync=3 thread=1002 core=1 time=1100 ") {
		t.Errorf("%q", lines)
	}
}

func TestTextErrors(t *testing.T) {
	head := textHeader + "\nchunk kind=sync id=0 timeline=0 ordinal=0 first=0 bytes=false seq=1..2 sync=0..0 time=0..0 threads=1\n"
	var b encoder
	e := filled(Sync, 1).(*event.Sync)
	eventFields(&b, e)
	good := string(recordText(nil, Sync, b.b))
	for _, c := range []struct{ text, want string }{
		{"x\n", `F:1: the first line is not "heddle trace 1"`},
		{textHeader + "\nseq=1\n", "F:2: there is no chunk for the line"},
		{textHeader + "\nchunk kind=sync\n", "F:2: the head of a chunk has 2 words, not 11"},
		{strings.Replace(head, "id=0", "id=x", 1), "F:2: id=x in the head of a chunk is no number of its kind"},
		{head + "seq=1 sync=x\n", `F:3: sync is "x", which is no number of its kind`},
		{head + "thread=1\n", `F:3: "thread=1" where seq= is expected`},
		{head + good + " more=1\n", `F:3: " more=1" after the last field`},
		{head + strings.Replace(good, "op="+e.Op.String(), "op=lock", 1) + "\n", `F:3: op is "lock"; allowed: none, thread_start, `},
		{head + "bytes xyz\n", "F:3: encoding/hex: invalid byte"},
	} {
		err := Load(&bytes.Buffer{}, "F", strings.NewReader(c.text))
		if !errors.Is(err, errText) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestTables: each field has a name of its own, and a row as many cells as the
// header.
func TestTables(t *testing.T) {
	for _, kind := range Tables() {
		names := strings.Split(Header(kind), ",")
		seen := map[string]bool{}
		for _, n := range names {
			if seen[n] {
				t.Errorf("%s: two fields %s", kind, n)
			}
			seen[n] = true
		}
		var out bytes.Buffer
		w := NewWriter(&out)
		var b encoder
		eventFields(&b, filled(kind, 3))
		w.Stream(kind, 0).Append(b.b, stampAt(1))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for row, err := range reader(t, out.Bytes()).Rows(Key{Kind: kind}, Where{}) {
			cells, readErr := csv.NewReader(strings.NewReader(row)).Read()
			if err := errors.Join(err, readErr); err != nil || len(cells) != len(names) {
				t.Errorf("%s: %d cells under %d names (%v): %s", kind, len(cells), len(names), err, row)
			}
		}
	}
}
