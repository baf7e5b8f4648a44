package schedule_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/h3/tracetext/tracetest"
)

// The command is MODEL and steps: the number of an event, or cNUMBER for the commit of its
// write. The output has the values that were read, by symbol, or why the schedule does not
// run; with "shorten" before the steps, the shortened schedule.
func TestRun(t *testing.T) {
	tracetest.Run(t, "testdata", func(command []string, trace *model.Trace) string {
		m, shorten := tracetest.Models[command[0]], command[1] == "shorten"
		steps := command[1:]
		if shorten {
			steps = command[2:]
		}
		var s schedule.Schedule
		for _, word := range steps {
			number, commit := strings.CutPrefix(word, "c")
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			s = append(s, schedule.Step{Event: model.ID(n), Commit: commit})
		}
		if shorten {
			out := ""
			for _, step := range schedule.Shorten(trace, m, s) {
				out += map[bool]string{true: " c", false: " "}[step.Commit] + fmt.Sprint(step.Event)
			}
			return out
		}
		values, err := schedule.Run(trace, m, s)
		if err != nil {
			return err.Error()
		}
		out := ""
		for _, name := range slices.Sorted(maps.Keys(values)) {
			out += fmt.Sprintf("%s=%d ", name, values[name].Lo)
		}
		return out
	})
}
