package shellword

import (
	"os/exec"
	"testing"
)

// TestQuote: the shell reads a quoted word as it was.
func TestQuote(t *testing.T) {
	for _, word := range []string{"", "plain", "a b", "it's", "$HOME", "--mount=/a:/b", "*", "tab\t", "two\nlines", `back\slash`, "ü", "~"} {
		out, err := exec.Command("sh", "-c", "printf %s "+Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q is read as %q, %v", word, out, err)
		}
	}
}
