package vex

// Compute computes an operation; false: the operation is unknown. There are always four
// arguments; unused ones are 0.
func Compute(op Op, args [4]Value) (Value, bool) {
	f := operationFuncs()[op]
	if f == nil {
		return Value{}, false
	}
	return f(&args), true
}

// Help calls a helper without side effects on numbers.
func (m *Machine) Help(callee string, args []uint64) (Value, error) {
	c := &Call{Callee: callee}
	for _, a := range args {
		c.Args = append(c.Args, &Const{Type: I64, Bits: a})
	}
	m.err = nil
	v := m.callHelper(c)
	return v, m.err
}
