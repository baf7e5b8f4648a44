package concolic

import "testing"

// Rows of a table as isdigit(3) has it, with two bytes an entry, and of one without rows.
func TestRows(t *testing.T) {
	classes := make([]byte, 512)
	for c := '0'; c <= '9'; c++ {
		classes[2*c], classes[2*c+1] = 0xd8, 0x08
	}
	if w := findRow(classes, 2*'4'+1, 2, 1); w.low != 2*'0'+1 || w.high != 2*'9'+1 {
		t.Errorf("%c to %c", rune(w.low/2), rune(w.high/2))
	}
	if w := findRow(classes, 2*'4', 1, 1); w.low != w.high {
		t.Errorf("%d to %d", w.low, w.high)
	}
	if w := findRow(classes, 2*'4', 2, 2); w.low != 2*'0' || w.high != 2*'9' {
		t.Errorf("%c to %c", rune(w.low/2), rune(w.high/2))
	}
	if w := findRow(classes, 2*'z', 1, 1); w.low != 2*'9'+2 || w.high != 511 {
		t.Errorf("%d to %d", w.low, w.high)
	}
}
