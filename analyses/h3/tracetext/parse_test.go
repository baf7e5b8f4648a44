package tracetext_test

import (
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/tracetext"
)

// The trace of the package documentation has the events and conditions of its lines.
func TestParse(t *testing.T) {
	trace, err := tracetext.Parse(`
		init x=1 y=2
		thread 1
		  fork 2
		  a = read x
		  write x a+1
		  join 2
		thread 2
		  begin
		  b = read x
		  path b == 2
		  bug b != 3
		  end`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for id := range trace.Events {
		names = append(names, trace.EventName(model.ID(id)))
	}
	want := "1#0 fork, 1#1 read, 1#2 write, 1#3 join, 2#0 begin, 2#1 read, 2#2 end"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	if err := trace.Check(); err != nil {
		t.Error(err)
	}
	if len(trace.Path) != 1 || len(trace.Bug) != 1 || trace.Initial[trace.Events[1].Addr] != 1 || trace.Events[1].Addr != trace.Events[5].Addr {
		t.Errorf("%+v", trace)
	}
}

// A mistake is reported with its line.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"write x 1":               "line 1, \"write x 1\": it is before the first thread",
		"thread 1\nwrites x 1":    "line 2, \"writes x 1\": \"writes\" is no event",
		"thread 1\nread x":        "the value has no name",
		"thread 1\nwrite x":       "write has 2 operands, not 1",
		"thread 1\nwrite x a":     "\"a\" is no value",
		"thread 1\njoin 2":        "there is no thread 2",
		"init x":                  "is not VARIABLE=NUMBER",
		"thread 1\npath 1 < 2":    "a condition is VALUE == VALUE",
		"thread 1\narrive b many": "many",
	} {
		if _, err := tracetext.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
