package settings

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/heddle-dmt/heddle/sched/windows"
)

// Settings are the windows of an experiment's runs, as its file has them. Without a size there are none.
type Settings struct {
	// Size is the number of requests of a full window, and Timeout the virtual time after which one that is not full
	// begins.
	Size    int    `mapstructure:"size" positive:"true"`
	Timeout string `mapstructure:"timeout"`
	// Tasks are the rules of the server and its tasks: a name that heddle knows, or a file.
	Tasks string `mapstructure:"tasks"`
	// Schedules is a file of schedules that windows follow where they fit. Runs do not add to it, so that none depends on
	// which others were before.
	Schedules string `mapstructure:"schedules"`
	// The others are those of heddle run: --window-sync-only, --window-hybrid, --window-preconditions, --window-reuse and
	// --time-bubbles.
	SyncOnly      bool   `mapstructure:"sync_only"`
	Hybrid        bool   `mapstructure:"hybrid"`
	Preconditions bool   `mapstructure:"preconditions"`
	Reuse         string `mapstructure:"reuse"`
	TimeBubbles   uint64 `mapstructure:"time_bubbles"`
}

// AreGiven reports whether runs are in windows.
func (s *Settings) AreGiven() bool { return s.Size > 0 }

// Resolve makes names of files relative to a folder absolute.
func (s *Settings) Resolve(dir string) {
	if s.Schedules != "" && !filepath.IsAbs(s.Schedules) {
		s.Schedules = filepath.Join(dir, s.Schedules)
	}
	if s.Tasks != "" && !slices.Contains(BuiltinRules(), s.Tasks) && !filepath.IsAbs(s.Tasks) {
		s.Tasks = filepath.Join(dir, s.Tasks)
	}
}

// Wrong returns the first field that is wrong, its value and the allowed ones; no name if all are right.
func (s *Settings) Wrong() (name string, found any, allowed string) {
	const sizes = "the number of requests of a full window, 1 to 1000000"
	timeout, err := time.ParseDuration(s.Timeout)
	switch {
	case !s.AreGiven() && *s != (Settings{}):
		return "size", s.Size, sizes
	case !s.AreGiven():
	case s.Size > 1_000_000:
		return "size", s.Size, sizes
	case s.Timeout != "" && (err != nil || timeout < time.Microsecond || timeout > time.Hour):
		return "timeout", s.Timeout, "1us to 1h of virtual time"
	case s.Tasks == "":
		return "tasks", "missing", fmt.Sprintf("a file of rules, or one of %v", BuiltinRules())
	case !slices.Contains([]string{"", string(windows.Online), string(windows.Shadow), string(windows.Off)}, s.Reuse):
		return "reuse", s.Reuse, "online, shadow, off"
	}
	return "", nil, ""
}

// TimeoutOrZero is the timeout, 0 if none is given.
func (s *Settings) TimeoutOrZero() time.Duration {
	timeout, _ := time.ParseDuration(s.Timeout) // Wrong has checked it
	return timeout
}

// Command is the hidden command under which heddle carries out a run in windows for an experiment (package worker).
const Command = "worker-windows"

// Request is a request for a run of a job in windows.
type Request[J any] struct {
	Job     J        `json:"job"`
	Windows Settings `json:"windows"`
	Rules   Rules    `json:"rules"`
}

// Reply is the reply, with numbers by the names of Measures.
type Reply[R any] struct {
	Report  R                  `json:"report"`
	Windows map[string]float64 `json:"windows,omitempty"`
}

// Measures are the names of the numbers of a run.
func Measures() []string {
	return []string{
		"windows", "full_windows", "window_requests", "reused_windows", "recorded_windows", "forced_windows", "window_races", "window_waited",
	}
}
