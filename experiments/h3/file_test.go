package h3

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/sched/guided"
)

// plans are texts of schedules, as between the first and the last line of a file.
var plans = []string{
	`{"args":["./race"],"inputs":null,"model":"tso","failure":{},"plan":{"threads":[{"id":1},{"id":2,"calls":[{"after":3,"entry":4096,"return":16}]}],"steps":[{"thread":2,"until":"place","since":3},{"thread":1,"until":"exits"}],"last":[1,2]}}`,
	`{"plan":{}}`,
	`{"plan":null}`,
	`{"plan":{"threads":[{"id":1},{"id":1}]}}`,
	`{"args":7}`,
	``,
}

// TestScheduleFiles: a file with a plan is read; a damaged one is refused with the reason.
func TestScheduleFiles(t *testing.T) {
	for text, want := range map[string]string{
		string(sealText([]byte(plans[1]))):                                  "",
		string(sealText([]byte(plans[2]))):                                  "it has no plan",
		string(sealText([]byte(plans[4]))):                                  "it has no plan",
		strings.Replace(string(sealText([]byte(plans[1]))), "{}", "{ }", 1): "its checksum is wrong",
		strings.TrimPrefix(string(sealText([]byte(plans[1]))), firstLine):   "its first or last line is missing",
		firstLine: "its first or last line is missing",
	} {
		s, err := parseSchedule("FILE", []byte(text))
		switch {
		case want == "" && (err != nil || s.Plan == nil):
			t.Errorf("%q: %v", text, err)
		case want != "" && (!errors.Is(err, errScheduleDamaged) || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzSchedule: any text is read or refused, a guide can be made of every plan that is read, and
// the schedule is the same after it was written and read again.
func FuzzSchedule(f *testing.F) {
	for _, text := range plans {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSchedule("FILE", sealText([]byte(text)))
		if err != nil {
			return
		}
		guided.New(s.Plan)
		once, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseSchedule("FILE", sealText(once))
		if err != nil {
			t.Fatalf("%v\n%s", err, once)
		}
		if twice, err := json.Marshal(again); err != nil || !reflect.DeepEqual(once, twice) {
			t.Errorf("%v\n%s\nand again\n%s", err, once, twice)
		}
	})
}
