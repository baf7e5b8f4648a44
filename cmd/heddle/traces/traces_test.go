package traces

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// threads is how many threads the trace of startsTrace has; their numbers begin at firstThread.
const threads, firstThread = 3, 1000

// startsTrace writes a trace with the starts of some threads.
func startsTrace(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "run.trace")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := trace.NewWriter(file)
	for i := range threads {
		at := event.Stamp{Seq: uint64(i), Thread: arch.ThreadID(firstThread + i), Time: arch.Cycles(100 * i)}
		trace.Put(w.Stream(trace.Threads, 0), &event.Start{Stamp: at, Name: fmt.Sprint(i + 1)})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// execute carries out `heddle trace` with arguments.
func execute(args ...string) (printed, said string, err error) {
	var out, remarks bytes.Buffer
	c := Command(command.Output{Stdout: &out, Say: func(format string, args ...any) { fmt.Fprintf(&remarks, format+"\n", args...) }})
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err = c.Execute()
	return out.String(), remarks.String(), err
}

func TestInfoCountsTheRecordsOfEachStream(t *testing.T) {
	printed, _, err := execute("info", startsTrace(t))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(printed[strings.Index(printed, string(trace.Threads)):])
	if want := fmt.Sprint(threads); fields[2] != want {
		t.Errorf("the stream has %s records, not %s:\n%s", fields[2], want, printed)
	}
}

func TestDumpSelectsByThreadAndTime(t *testing.T) {
	path := startsTrace(t)
	for _, c := range []struct {
		flags []string
		lines int
	}{
		{[]string{"--events"}, threads},
		{[]string{"--thread", "1001"}, 1},
		{[]string{"--from", "100"}, 2},
		{[]string{"--from", "100", "--to", "100"}, 1},
	} {
		printed, _, err := execute(append(append([]string{"dump"}, c.flags...), path)...)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(printed, `name=`); n != c.lines {
			t.Errorf("%v prints %d events, not %d:\n%s", c.flags, n, c.lines, printed)
		}
	}
}

// TestWrongSelections: a selection that the trace does not have is refused in a sentence that lists
// what it has.
func TestWrongSelections(t *testing.T) {
	path := startsTrace(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"dump", "--stream", "sync"}, "it has: " + string(trace.Threads)},
		{[]string{"dump", "--thread", "7"}, "it has: 1000, 1001, 1002"},
		{[]string{"dump", "--from", "9", "--to", "3"}, "a cycle from --from on, which is 9"},
		{[]string{"dump", "--data", "12-3"}, "FROM-TO"},
		{[]string{"flow"}, "either --core or --thread"},
		{[]string{"flow", "--thread", "7"}, "it has: 1000, 1001, 1002"},
		{[]string{"export", "--format", "csv"}, "--stream is needed"},
		{[]string{"export", "--format", "xml"}, "perfetto, csv"},
		{[]string{"load"}, "-o TRACE is needed"},
	} {
		if _, _, err := execute(append(c.args, path)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, which does not contain %q", c.args, err, c.want)
		}
	}
}

func TestNumbersInSentences(t *testing.T) {
	var many []uint32
	for i := range uint32(25) {
		many = append(many, i)
	}
	if got := listNumbers(many); !strings.HasSuffix(got, "19, ...") {
		t.Errorf("25 numbers are listed as %q", got)
	}
}
