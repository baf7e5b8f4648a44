package study

import "sync"

// Steps says how far a number of equal steps has come, a line for each
// tenth of a hundred or more.
type Steps struct {
	o     *Options
	name  string
	n     int
	mutex sync.Mutex
	done  int
}

// NewSteps is for n steps of the named work.
func NewSteps(o *Options, name string, n int) *Steps { return &Steps{o: o, name: name, n: n} }

// Step is called when a step is done; by several goroutines if need be.
func (s *Steps) Step() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.done++
	if s.n >= 100 && s.done*10/s.n != (s.done-1)*10/s.n {
		s.o.Say("  %s: %d of %d runs", s.name, s.done, s.n)
	}
}
