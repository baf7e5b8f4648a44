package dpor

// State is the state of an exploration between executions, to be stored as JSON.
type State struct {
	Nodes []NodeState `json:"nodes"`
}

// NodeState is a state of the program on the path to the next execution.
type NodeState struct {
	// Process executes the next event, which is Event, except in the last node, where it is not known.
	Process Process   `json:"process"`
	Event   *Event    `json:"event,omitempty"`
	Sleep   []Event   `json:"sleep,omitempty"`
	Next    []*Branch `json:"next,omitempty"`
	Below   []*Branch `json:"below,omitempty"`
}

// State returns the state, which shares memory with the explorer until the next execution begins.
func (x *Explorer) State() *State {
	s := &State{Nodes: make([]NodeState, len(x.nodes))}
	for i := range x.nodes {
		n := &x.nodes[i]
		s.Nodes[i] = NodeState{Process: n.process, Sleep: n.sleep, Next: n.next, Below: n.below}
		if n.known {
			s.Nodes[i].Event = &n.event
		}
	}
	return s
}

// Continue makes an explorer that continues from a state.
func Continue(s *State) *Explorer {
	x := New()
	for i := range s.Nodes {
		from := &s.Nodes[i]
		n := node{process: from.Process, sleep: from.Sleep, next: from.Next, below: from.Below}
		if from.Event != nil {
			n.event, n.known = *from.Event, true
		}
		x.nodes = append(x.nodes, n)
	}
	x.fixed = max(0, len(x.nodes)-1)
	return x
}
