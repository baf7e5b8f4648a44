package complementary

import "fmt"

// Length adapts how long epochs are, in milliseconds (section 3.2): every epoch
// without a race makes them longer by Step up to Most, every one with a race
// shorter by a factor, down to Least.
//
// Grace is how long an epoch continues after output: the message of a failed assertion and the abort
// that follows are in one. Every epoch doubles it up to 5 ms until one has a race, and from there on it
// is 0.05 ms: races come in numbers, and what is rolled back should be short.
type Length struct {
	Now, Least, Most, Step float64
	Grace, MostGrace       float64
}

// The least Length.Grace, and the greatest without a race.
const (
	leastGrace = 0.05
	mostGrace  = 5
)

// cut is the factor by which a race makes epochs shorter.
const cut = 20

// NewLength starts at so many milliseconds: epochs grow by 50 ms up to a second.
func NewLength(ms float64) Length {
	return Length{Now: ms, Least: min(ms, 1) / cut, Most: max(ms, 1000), Step: 50, Grace: leastGrace, MostGrace: mostGrace}
}

// Grow is for an epoch without a race.
func (l *Length) Grow() {
	l.Now = min(l.Now+l.Step, l.Most)
	l.Grace = min(2*l.Grace, l.MostGrace)
}

// Cut is for an epoch with a race.
func (l *Length) Cut() {
	l.Now = max(l.Now/cut, l.Least)
	l.EndGrace()
}

// EndGrace is for an epoch whose replicas differ, or fail, when it is executed first.
func (l *Length) EndGrace() { l.Grace, l.MostGrace = leastGrace, leastGrace }

// Sampler chooses the epochs that are checked, so that their part of the run's
// time comes to a rate (section 3.3.3).
type Sampler struct {
	rate          float64
	checked, time float64
}

// NewSampler makes one; 1 checks all epochs, 0 none.
func NewSampler(rate float64) (*Sampler, error) {
	if !(rate >= 0 && rate <= 1) {
		return nil, fmt.Errorf("the sampling rate is %v; allowed: 0 to 1", rate)
	}
	return &Sampler{rate: rate}, nil
}

// Next tells whether an epoch that took so long is checked: if the checked part
// would else fall below the rate.
func (s *Sampler) Next(length float64) bool {
	s.time += length
	if s.rate == 0 || s.checked+length/2 > s.rate*s.time && s.rate < 1 {
		return false
	}
	s.checked += length
	return true
}

// Checked is the part of the time that was checked.
func (s *Sampler) Checked() float64 {
	if s.time == 0 {
		return 1
	}
	return s.checked / s.time
}
