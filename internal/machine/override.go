package machine

// ignoreFutexTimeouts says whether waits for a futex have no deadline but sched.Expire.
func (s *state) ignoreFutexTimeouts(on bool) {
	s.override.NoFutexTimeouts = on
	s.kernel.RecheckTimeouts()
}

// ignoreTimeouts says the same of all waits but sleeps.
func (s *state) ignoreTimeouts(on bool) {
	s.override.NoCallTimeouts = on
	s.ignoreFutexTimeouts(on)
}

// holdAllSignals says whether signals of all threads wait.
func (s *state) holdAllSignals(on bool) {
	s.override.HoldsAll = on
	if !on {
		s.kernel.RecheckSignals()
	}
}
