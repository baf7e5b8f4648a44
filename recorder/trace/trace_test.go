package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

func stampAt(n int) event.Stamp {
	return event.Stamp{
		Seq: uint64(n), Sync: uint64(n / 3), Thread: arch.ThreadID(1000 + n%3), Core: arch.CoreID(n % 2),
		Time: arch.Cycles(100 * n), Instructions: uint64(7 * n), Branches: uint64(n),
	}
}

// small is a trace of a few chunks of several streams.
func small(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out)
	fill(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func reader(t *testing.T, file []byte) *Reader {
	t.Helper()
	r, err := NewReader("test.trace", bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// contents are the chunks' contents before compression by their offset, as far as they can
// be read, and the errors.
func contents(r *Reader) (map[int64]string, []error) {
	all, errs := map[int64]string{}, slices.Clone(r.Damage())
	for i := range r.chunks {
		raw, err := r.readPayload(part{i, -1})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all[r.chunks[i].Offset] = string(raw)
	}
	return all, errs
}

func TestWhatIsAppendedIsRead(t *testing.T) {
	r := reader(t, small(t))
	if d := r.Damage(); len(d) > 0 {
		t.Fatal(d)
	}
	n := 0
	for e, err := range Get[event.Sync](r, Key{Kind: Sync}, Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		want := event.Sync{Stamp: stampAt(n), Op: event.OpMutexLock, Object: event.ObjectID(n), Peer: -1}
		if e != want {
			t.Fatalf("record %d is %+v, want %+v", n, e, want)
		}
		n++
	}
	if n != 40 {
		t.Errorf("%d records, want 40", n)
	}
	text, err := io.ReadAll(r.Bytes(Key{PT, 1}))
	if err != nil || !strings.HasPrefix(string(text), "packet 0;packet 1;") || !strings.HasSuffix(string(text), "packet 39;") {
		t.Errorf("bytes %q, %v", text, err)
	}
	if m, err := r.Manifest(); string(m) != `{"program":"a"}` || err != nil {
		t.Errorf("manifest %s, %v", m, err)
	}
	if got := fmt.Sprint(r.Streams()); got != "[{manifest 0} {pt 1} {summary 0} {sync 0}]" {
		t.Errorf("streams %s", got)
	}
	if bad := r.Check(); len(bad) > 0 {
		t.Errorf("check: %v", bad)
	}
}

func TestSameBytesEachTime(t *testing.T) { // invariant 1
	if !bytes.Equal(small(t), small(t)) {
		t.Error("two traces of the same events differ")
	}
}

func TestSelection(t *testing.T) {
	r := reader(t, small(t))
	for _, where := range []Where{
		{FromSeq: 5, ToSeq: 17},
		{FromTime: 1200, ToTime: 1900, Thread: 1001},
		{FromSync: 9},
		{Thread: 1002},
		{Thread: 77},
	} {
		var want, got []uint64
		for n := range 40 {
			if s := stampAt(n); where.Has(s) {
				want = append(want, s.Seq)
			}
		}
		for e, err := range Get[event.Sync](r, Key{Kind: Sync}, where) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", where, got, want)
		}
	}
	chunks := 0
	for range r.Parts(Key{Kind: Sync}, Where{FromSeq: 12, ToSeq: 15}) {
		chunks++
	}
	if chunks != 1 {
		t.Errorf("%d chunks are looked into, want 1", chunks)
	}
	for _, n := range []uint64{0, 9, 10, 39} {
		record, ok, err := r.Record(Key{Kind: Sync}, n)
		e, decodeErr := Decode[event.Sync](record)
		if !ok || errors.Join(err, decodeErr) != nil || e.Seq != n {
			t.Errorf("record %d: %+v, %v, %v", n, e, ok, err)
		}
	}
	if _, ok, err := r.Record(Key{Kind: Sync}, 40); ok || err != nil {
		t.Errorf("record 40 exists (%v)", err)
	}
}

// TestCutAnywhere is invariant 2 for a file that ends early.
func TestCutAnywhere(t *testing.T) {
	file := small(t)
	whole, _ := contents(reader(t, file))
	ends := reader(t, file).chunks
	for size := range file {
		r, err := NewReader("test.trace", bytes.NewReader(file[:size]), int64(size))
		if err != nil {
			if size >= headerSize || !errors.Is(err, errShort) {
				t.Fatalf("cut at %d: %v", size, err)
			}
			continue
		}
		got, errs := contents(r)
		if len(errs) == 0 {
			t.Fatalf("cut at %d: no error", size)
		}
		for _, c := range ends {
			text, ok := got[c.Offset]
			if fits := c.Offset+c.Size() <= int64(size); fits != ok || ok && text != whole[c.Offset] {
				t.Fatalf("cut at %d: chunk at %d of %d bytes: read %v", size, c.Offset, c.Size(), ok)
			}
		}
		if len(r.Check()) == 0 {
			t.Fatalf("cut at %d: check finds nothing", size)
		}
	}
}

// TestFlipAnywhere is invariant 2 for changed bytes.
func TestFlipAnywhere(t *testing.T) {
	file := small(t)
	original := reader(t, file)
	whole, _ := contents(original)
	for at := range file {
		for _, mask := range []byte{0xff, 1 << (at % 8)} {
			file[at] ^= mask
			r, err := NewReader("test.trace", bytes.NewReader(file), int64(len(file)))
			if err != nil {
				t.Fatalf("byte %d changed: %v", at, err)
			}
			got, errs := contents(r)
			checked := r.Check()
			if len(errs) == 0 || len(checked) == 0 {
				t.Fatalf("byte %d changed: %v, check: %v", at, errs, checked)
			}
			if !errors.Is(errs[0], errDamage) && !errors.Is(errs[0], errCut) {
				t.Fatalf("byte %d changed: %v", at, errs)
			}
			for _, c := range original.chunks {
				hit := int64(at) >= c.Offset && int64(at) < c.Offset+c.Size()
				if text, ok := got[c.Offset]; ok == hit || ok && text != whole[c.Offset] {
					t.Fatalf("byte %d changed: chunk at %d of %d bytes: read %v", at, c.Offset, c.Size(), ok)
				}
			}
			file[at] ^= mask
		}
	}
}

func TestOtherFiles(t *testing.T) {
	next := fileHeader()
	next[len(fileMagic)] = Version + 1
	next = appendSum(next[:headerSize-8], next[:headerSize-8])
	for _, c := range []struct {
		name, file string
		want       error
		says       string
	}{
		{"empty", "", errShort, "the trace F is cut at byte 0, within its header"},
		{"text", "once upon a time there was a file", errNoTrace, `F is not a trace: it begins with "once upon a time"`},
		{"short text", "x", errNoTrace, `F is not a trace: it begins with "x"`},
		{"next version", string(next) + "...", errVersion, fmt.Sprintf("the trace F is in format %d; this heddle reads format %d only", Version+1, Version)},
	} {
		_, err := NewReader("F", strings.NewReader(c.file), int64(len(c.file)))
		if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", c.name, err, c.says)
		}
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, errOpen) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, errOpen) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
}

// TestTraceWithinATrace: a damaged chunk that holds another trace does not give
// that one's chunks.
func TestTraceWithinATrace(t *testing.T) {
	inner := small(t)
	noise := rand.NewChaCha8([32]byte{1})
	outer := make([]byte, 2000)
	_, _ = noise.Read(outer) // so that the chunk is not compressed
	var out bytes.Buffer
	w := NewWriter(&out)
	w.ByteStream(PT, 0).Append(append(outer, inner...), event.Stamp{})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := out.Bytes()[:out.Len()-1]
	file[headerSize+20] ^= 1
	if r := reader(t, file); len(r.chunks) != 0 || len(r.Damage()) == 0 {
		t.Errorf("%d chunks, damage %v", len(r.chunks), r.Damage())
	}
}

// limited is a disk with little space, as a file is: a write may be done in part.
type limited struct {
	file []byte
	max  int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.max-len(l.file))
	l.file = append(l.file, p[:n]...)
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

type truncatable struct{ limited }

func (l *truncatable) Truncate(size int64) error {
	l.file = l.file[:size]
	return nil
}

func TestFullDisk(t *testing.T) {
	file := small(t)
	whole, _ := contents(reader(t, file))
	for space := headerSize; space < len(file); space += 13 {
		plain, short := &limited{max: space}, &truncatable{limited{max: space}}
		for _, out := range []io.Writer{plain, short} {
			w := NewWriter(out)
			fill(w)
			if err := w.Close(); !errors.Is(err, errWrite) || !strings.HasSuffix(err.Error(), "no space left on device") {
				t.Fatalf("space for %d: %v", space, err)
			}
		}
		for _, bytes := range [][]byte{plain.file, short.file} {
			got, errs := contents(reader(t, bytes))
			if len(errs) != 1 || !errors.Is(errs[0], errCut) {
				t.Fatalf("space for %d: %v", space, errs)
			}
			for at, text := range got {
				if whole[at] != text {
					t.Fatalf("space for %d: chunk at %d differs", space, at)
				}
			}
		}
	}
}

// fill appends the records of small.
func fill(w *Writer) {
	_ = w.Manifest(map[string]string{"program": "a"})
	syncs, bytesOfPT := w.Stream(Sync, 0), w.ByteStream(PT, 1)
	for n := range 40 {
		Put(syncs, &event.Sync{Stamp: stampAt(n), Op: event.OpMutexLock, Object: event.ObjectID(n), Peer: -1})
		bytesOfPT.Append([]byte(fmt.Sprintf("packet %d;", n)), stampAt(n))
		if n%10 == 9 {
			w.Flush()
		}
	}
	_ = w.Summary(map[string]int{"exit": 0})
}

// TestKilledRecorder: flushed records are there without Close.
func TestKilledRecorder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := NewWriter(f)
	fill(w)
	w.Stream(Sync, 0).Append([]byte("never flushed"), event.Stamp{})
	close(w.queue) // the process has gone; its writes have reached the file
	<-w.done
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if d := r.Damage(); len(d) != 1 || !errors.Is(d[0], errCut) {
		t.Errorf("damage %v", d)
	}
	n := 0
	for range r.Records(Key{Kind: Sync}, Where{}) {
		n++
	}
	if n != 40 {
		t.Errorf("%d records, want 40", n)
	}
}

// TestOpenChunksAreBounded is invariant 3 for a writer with many streams.
func TestOpenChunksAreBounded(t *testing.T) {
	w := NewWriter(io.Discard)
	piece := make([]byte, 10_000)
	for n := range 20_000 {
		w.ByteStream(PT, uint32(n%2000)).Append(piece, stampAt(n))
		if w.held > budget {
			t.Fatalf("%d bytes are held after %d pieces", w.held, n)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// FuzzReader: no file makes a reader fail otherwise than with an error.
func FuzzReader(f *testing.F) {
	var whole bytes.Buffer
	w := NewWriter(&whole)
	fill(w)
	m := w.Mark()
	w.Stream(Sync, 0).Append([]byte("abandoned"), stampAt(50))
	w.Return(m)
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add(whole.Bytes()[:whole.Len()-5])
	f.Add(fileHeader())
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := NewReader("F", bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		defer r.Close()
		r.Check()
		Dump(io.Discard, r, DumpOptions{})
		Dump(io.Discard, r, DumpOptions{Events: true, Where: Where{FromSeq: 3, Thread: 1001}})
	})
}
