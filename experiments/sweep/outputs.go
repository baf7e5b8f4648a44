package sweep

import (
	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/output"
)

// keepsOutputs reports whether the store has the texts that the experiment's values are parsed from. One that
// is too long to be kept does not count.
func (s *sweep) keepsOutputs(record store.Record) (bool, error) {
	for _, stream := range s.plan.Experiment.parsedStreams() {
		sum := streamOf(record.Report, stream)
		if sum.Bytes > job.MaxKept {
			continue
		}
		if ok, err := s.store.HasOutput(sum); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// keepTexts stores the texts that values are parsed from.
func (s *sweep) keepTexts(r job.Report) error {
	for _, stream := range s.plan.Experiment.parsedStreams() {
		sum, text := r.Stdout, r.StdoutText
		if stream == streamStderr {
			sum, text = r.Stderr, r.StderrText
		}
		if sum.Bytes > job.MaxKept {
			continue
		}
		if err := s.store.PutOutput(sum, text); err != nil {
			return err
		}
	}
	return nil
}

func streamOf(r store.Report, stream string) output.Sum {
	if stream == streamStderr {
		return r.Stderr
	}
	return r.Stdout
}
