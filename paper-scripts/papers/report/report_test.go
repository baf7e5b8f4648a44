package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
)

// sample is a report with a figure, a table whose cells have all that is hard, and a step that failed.
func sample() *Report {
	figure := sheet.New("figure1", "Figure 1: times & more", &table.Table{
		Head: []table.Column{{Name: "program", Key: "program"}, {Name: "time", Key: "time", Number: true}, {Name: "paper", Key: "paper_time", Number: true}},
		Rows: [][]string{{"fft", "10", "2"}, {"lu", "-", "3"}, {"ocean", "4", "3"}, {"radix", "1", "9"}},
	}, nil, &sheet.Chart{Kind: plots.Bars, Y: plots.Axis{Title: "time [s]"}, Columns: []string{"time"}, Reported: []sheet.Reported{{Of: "time", Paper: "paper_time"}}})
	long := strings.Repeat("argv[1] ≤ 3 ∧ ", 400) + strings.Repeat("x", 300)
	words := sheet.New("table1", "Table 1: words", &table.Table{
		Head:  []table.Column{{Name: "program", Key: "program"}, {Name: "constraints <b>", Key: "constraints"}, {Name: "which", Key: "which"}, {Name: "paper", Key: "paper_which"}, {Name: "why", Key: "why"}},
		Rows:  [][]string{{"fft", "<script>", "yes", "yes", ""}, {"lu", long, "no (3 of 5)", "yes", "for a reason of its own"}},
		Notes: []string{"A note."},
	}, nil, nil)
	for range 60 {
		words.Rows = append(words.Rows, []string{"row", "some words that are not many", "yes", "yes", ""})
	}
	return &Report{Size: "quick", About: []string{"Made by a test."}, Papers: []*Paper{{
		Program: "peregrine", Title: "PEREGRINE", Citation: "H. Cui and others.",
		Why: []Reason{
			{In: []string{"figure1"}, Columns: []string{"time"}, Rows: []string{"fft"}, Text: "It is another fft."},
			{In: []string{"figure1"}, Size: "paper", Text: "Not at this size."},
		},
		Results: []*Result{
			{Program: "peregrine", Artefacts: []string{"figure1", "table1"}, Size: "quick", Flags: []string{"--times", "1"}, Sheets: []*sheet.Sheet{figure, words}},
			{Program: "peregrine", Artefacts: []string{"table9"}, Size: "quick", Error: "the disk is full"},
		},
	}}}
}

// A ratio is right of the paper's value; a value that differs has its reason, or is counted as without one.
func TestTables(t *testing.T) {
	tables := sample().Papers[0].Tables()
	if len(tables) != 3 {
		t.Fatalf("%d tables", len(tables))
	}
	figure := tables[0]
	var ratios []string
	for _, row := range figure.Rows {
		ratios = append(ratios, row.Cells[3].Text)
	}
	if want := []string{"5.00", "-", "1.33", "0.11"}; !slices.Equal(ratios, want) || figure.Columns[3].Key != "ratio_time" {
		t.Errorf("%v, want %v", ratios, want)
	}
	if compared, differ, unexplained := figure.Counts(); compared != 3 || differ != 2 || unexplained != 1 {
		t.Errorf("%d compared, %d differ, %d without a reason", compared, differ, unexplained)
	}
	if !slices.Equal(figure.Reasons, []string{"It is another fft."}) || !slices.Equal(figure.Rows[0].Reasons, []int{1}) || !slices.Equal(figure.Rows[3].Unexplained, []string{"time"}) {
		t.Errorf("%+v", figure)
	}
	if figure.Command != "heddle papers --quick peregrine/figure1" || figure.Run != "go run ./paper-scripts/peregrine --times 1 figure1" {
		t.Errorf("%s, %s", figure.Command, figure.Run)
	}
	if _, differ, unexplained := tables[1].Counts(); differ != 1 || unexplained != 0 {
		t.Errorf("%d words differ, %d without a reason", differ, unexplained)
	}
	if tables[2].Name != "table9" || tables[2].Error == "" {
		t.Errorf("%+v", tables[2])
	}
}

// The page is well formed, has no reference to another file, and has the texts of the cells.
func TestHTML(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	keep(t, "report.html", b.Bytes())
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	count := map[string]int{}
	var text strings.Builder
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			count[x.Name.Local]++
			for _, a := range x.Attr {
				if (a.Name.Local == "src" || a.Name.Local == "href") && !strings.HasPrefix(a.Value, "#") {
					t.Errorf("%s refers to %s", x.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			text.Write(x)
		}
	}
	if count["svg"] != 1 || count["section"] != 3 || count["script"] != 0 || count["link"] != 0 {
		t.Errorf("%v", count)
	}
	for _, want := range []string{"Figure 1: times & more", "<script>", "It is another fft.", "no reason for time", "This step failed: the disk is full", "ocean", "A note.", "Made by a test.", "paper"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// The PDF has pages for all, and the figure in it.
func TestPDF(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WritePDF(&b); err != nil {
		t.Fatal(err)
	}
	keep(t, "report.pdf", b.Bytes())
	if !bytes.HasPrefix(b.Bytes(), []byte("%PDF-")) || !bytes.Contains(b.Bytes(), []byte("%%EOF")) {
		t.Error("it is no PDF")
	}
	if pages := bytes.Count(b.Bytes(), []byte("/Type /Page\n")); pages < 4 {
		t.Errorf("%d pages", pages)
	}
}

// keep writes a file to look at, if HEDDLE_PLOTS names a folder.
func keep(t *testing.T, name string, content []byte) {
	t.Helper()
	if dir := os.Getenv("HEDDLE_PLOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Lines are as wide as asked for, also of a word that is wider, and lose no character.
func TestWrap(t *testing.T) {
	style := styleOf(8)
	content := "some words and " + strings.Repeat("w", 50) + " and more"
	lines := wrap(style, content, 60)
	if strings.ReplaceAll(strings.Join(lines, ""), " ", "") != strings.ReplaceAll(content, " ", "") {
		t.Errorf("%q", lines)
	}
	for _, line := range lines {
		if style.Width(line) > 60 {
			t.Errorf("%q is %v wide", line, style.Width(line))
		}
	}
}

func TestUpdate(t *testing.T) {
	results := sample().Papers[0].Results
	text := "# T\n<!-- begin: make papers peregrine/figure1 program time=our_time -->\nold\n<!-- end: make papers -->\nend\n"
	want := "# T\n<!-- begin: make papers peregrine/figure1 program time=our_time -->\n| program | our time |\n| --- | --: |\n| fft | 10 |\n| lu | - |\n| ocean | 4 |\n| radix | 1 |\n\nMeasured at the size `--quick`.\n<!-- end: make papers -->\nend\n"
	got, err := Update(text, results)
	if err != nil || got != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, got, want)
	}
	if again, err := Update(got, results); err != nil || again != got {
		t.Errorf("a second time it is %v\n%s", err, again)
	}
	if got, err = Update("<!-- begin: make papers peregrine/figure1 rows:lu,ocean time program -->\n<!-- end: make papers -->", results); err != nil || !strings.Contains(got, "| - | lu |\n| 4 | ocean |\n\n") {
		t.Errorf("%v:\n%s", err, got)
	}
	for wrong, says := range map[string]string{
		"<!-- begin: make papers peregrine/figure2 -->\n<!-- end: make papers -->":           "no result for peregrine/figure2",
		"<!-- begin: make papers peregrine/figure1 none -->\n<!-- end: make papers -->":      "no column none",
		"<!-- begin: make papers peregrine/figure1 rows:none -->\n<!-- end: make papers -->": "no row none",
		"<!-- begin: make papers peregrine/figure1 -->\n":                                    "has no end",
	} {
		if _, err := Update(wrong, results); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
