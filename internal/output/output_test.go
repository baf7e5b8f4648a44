package output

import (
	"io"
	"testing"
)

// TestSum compares with sha256sum(1).
func TestSum(t *testing.T) {
	m := NewMeter()
	if want := (Sum{"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 0}); m.Sum() != want {
		t.Errorf("nothing: got %v, want %v", m.Sum(), want)
	}
	for _, part := range []string{"b\n", "", "a\n"} {
		if _, err := io.WriteString(m, part); err != nil {
			t.Fatal(err)
		}
	}
	if want := (Sum{"aea8a04c2f293417e499bf5de2def8ebb1ed40264d128a67180ea56fbe4600ff", 4}); m.Sum() != want {
		t.Errorf("got %v, want %v", m.Sum(), want)
	}
}
