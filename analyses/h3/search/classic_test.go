package search_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/h3/search"
	"github.com/heddle-dmt/heddle/analyses/h3/tracetext/tracetest"
)

// The command is the list of memory models to be tried; the output those under which the
// bug can happen. A schedule that is found runs.
func TestClassicOutcomes(t *testing.T) {
	tracetest.Run(t, "testdata", func(command []string, trace *model.Trace) string {
		out := ""
		for _, name := range command {
			m := tracetest.Models[name]
			found := search.Search(trace, m, search.Options{FreeCores: true})
			if found.Answer == search.Limit {
				return "the search reached its limit"
			}
			if found.Answer == search.None {
				continue
			}
			if _, err := schedule.Run(trace, m, found.Schedule); err != nil {
				return err.Error()
			}
			out += name + " "
		}
		return out
	})
}
