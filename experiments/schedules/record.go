package schedules

import (
	"io"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/recorder"
)

// Recording is what a run has to be recorded with for a schedule.
func Recording(to io.Writer) *heddle.Record {
	return &heddle.Record{To: to, Sync: &heddle.SyncRecord{}, Inputs: true, Memory: &recorder.MemoryConfig{}}
}
