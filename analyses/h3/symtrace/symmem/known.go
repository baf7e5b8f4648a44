package symmem

import "errors"

// Known is memory for code that is executed on numbers (vex.Memory).
type Known struct{ *Memory }

var errExpression = errors.New("memory holds an expression")

// Load reads bytes; that some of them are expressions is an error.
func (k Known) Load(addr uint64, p []byte) error {
	if !k.Read(addr, p) {
		return errExpression
	}
	return nil
}

// Store writes bytes.
func (k Known) Store(addr uint64, p []byte) error {
	k.Write(addr, p)
	return nil
}
