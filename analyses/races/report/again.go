package report

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/internal/shellword"
)

const racesCommand = "heddle races"

// another is the command line that analyses a run under the next seed, by the description of a run and the
// options of the analysis; empty: there is none. It has the flags that most often matter.
func (m *maker) another(manifest []byte) (string, error) {
	if manifest == nil {
		return "", nil
	}
	var run struct {
		Cores int    `json:"cores"`
		Seed  uint64 `json:"seed"`
		Sched struct {
			Policy  string `json:"policy"`
			Quantum uint64 `json:"quantum"`
		} `json:"sched"`
	}
	if err := json.Unmarshal(manifest, &run); err != nil {
		return "", err
	}
	words := []string{racesCommand, "--cores=" + strconv.Itoa(cmp.Or(run.Cores, 1)), "--seed=" + strconv.FormatUint(run.Seed+1, 10)}
	if m.o.Order == races.ScheduleRelative {
		words = append(words, "--mode=schedule")
	}
	if m.o.Words == OrderWords || m.o.Words == CodeWords {
		words = append(words, "--atomic-words="+string(m.o.Words))
	}
	if run.Sched.Policy != "" {
		words = append(words, "--sched="+run.Sched.Policy)
	}
	if run.Sched.Quantum > 0 {
		words = append(words, "--quantum="+strconv.FormatUint(run.Sched.Quantum, 10))
	}
	if m.names.root != "" {
		words = append(words, "--rootfs="+m.names.root)
	}
	for _, at := range m.names.mounts {
		words = append(words, "--mount="+at.host+":"+at.guest)
	}
	words = append(append(words, "--"), m.names.args...)
	for i, w := range words[1:] {
		words[i+1] = shellword.Quote(w)
	}
	return strings.Join(words, " "), nil
}
