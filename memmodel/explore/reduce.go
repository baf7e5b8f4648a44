package explore

// Which steps must be taken from a state? Not all: if one enabled step commutes
// with everything that the rest of the system can do before it, and stays
// enabled, then it alone is a persistent set (Godefroid, "Partial-order methods
// for the verification of concurrent systems", LNCS 1032, chapter 4), and the
// others may wait. Two kinds of step are like that:
//
//  1. An instruction that neither reads memory nor stores to it directly: it
//     works on registers, or appends to the end of the thread's own buffer.
//     (Under SC too, where the stores of one instruction may be
//     several.) No other thread sees it, and commits of older stores do not
//     depend on younger ones. A full fence on an empty buffer is one too.
//  2. An instruction, a load of one, or a commit that touches only slots of memory which no
//     other thread will touch any more, neither by its code nor from its
//     buffer. The thread's own other steps commute with it: a load sees its
//     thread's store whether it has been committed or not, and commits keep
//     the order that the model wants, which is that of the step or none.
//
// In a test with loops such a step could be taken round and round while others
// wait for ever. So there a state whose only step leads to a state that was
// seen already takes all its steps (the cycle proviso).

// sufficientStep returns a step that suffices by itself, if there is one.
func (s *system) sufficientStep(st *state, steps []step) (step, bool, error) {
	for _, by := range steps {
		slots, err := s.touchedSlots(st, by)
		if err != nil {
			return by, false, err
		}
		if slots&s.slotsOfOthers(st, int(by.thread)) == 0 {
			return by, true, nil
		}
	}
	return step{}, false, nil
}

// touchedSlots are the slots of shared memory that a step touches, as bits.
func (s *system) touchedSlots(st *state, by step) (uint64, error) {
	i := int(by.thread)
	if by.entry != instruction {
		e := &s.buffers[st.buffer[i]][by.entry]
		return spanSlots(e.Addr, uint64(e.Size)), nil
	}
	id, view := st.thread[i], s.viewOf(st, i)
	if err := s.learnLoads(id, view); err != nil {
		return 0, err
	}
	n := s.infos[id]
	var slots uint64
	for _, l := range n.nextLoads() {
		slots |= spanSlots(uint64(l.at), uint64(l.size))
	}
	if !n.isLastStep() {
		return slots, nil
	}
	r, err := s.executeInstr(id, view)
	if err != nil || !s.commitsAtOnce(&n, &r) {
		return slots, err
	}
	for k := range r.stores {
		slots |= spanSlots(r.stores[k].Addr, uint64(r.stores[k].Size))
	}
	return slots, nil
}

// slotsOfOthers are the slots that threads other than i may still touch.
func (s *system) slotsOfOthers(st *state, i int) uint64 {
	var slots uint64
	for j := range s.threads {
		if j == i {
			continue
		}
		slots |= s.threads[j].touched[s.infos[st.thread[j]].index]
		for k := range s.buffers[st.buffer[j]] {
			if e := &s.buffers[st.buffer[j]][k]; !e.Fence {
				slots |= spanSlots(e.Addr, uint64(e.Size))
			}
		}
	}
	return slots
}
