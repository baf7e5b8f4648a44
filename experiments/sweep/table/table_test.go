package table

import (
	"errors"
	"strings"
	"testing"
)

var sample = Table{
	Head:  []Column{{"program", "program", false}, {"speed-up", "speedup", true}},
	Rows:  [][]string{{"pigz_4 & co", "1.00"}, {"a,\"b\"", "12.50"}},
	Notes: []string{"A note."},
}

func TestFormats(t *testing.T) {
	for format, want := range map[string]string{
		Text: `
 program      speed-up
───────────────────────
 pigz_4 & co      1.00
 a,"b"           12.50
A note.
`,
		CSV: `
program,speedup
pigz_4 & co,1.00
"a,""b""",12.50
`,
		LaTeX: `
\begin{tabular}{lr}
\toprule
program & speed-up \\
\midrule
pigz\_4 \& co & 1.00 \\
a,"b" & 12.50 \\
\bottomrule
\end{tabular}
`,
	} {
		var b strings.Builder
		if err := sample.Write(&b, format); err != nil || "\n"+b.String() != want {
			t.Errorf("%s: %v\ngot:\n%s\nwant:%s", format, err, b.String(), want)
		}
	}
}

type fullDisk struct{}

var errFull = errors.New("no space left on device")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrorsAreReported(t *testing.T) {
	for _, format := range Formats() {
		if err := sample.Write(fullDisk{}, format); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", format, err)
		}
	}
}
