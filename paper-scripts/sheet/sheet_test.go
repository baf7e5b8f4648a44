package sheet

import (
	"bytes"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
)

// text writes a value as "low number high".
func text(v Value) string {
	var parts []string
	for _, n := range []*float64{v.Low, v.Number, v.High} {
		if n == nil {
			parts = append(parts, "_")
		} else {
			parts = append(parts, strconv.FormatFloat(*n, 'f', -1, 64))
		}
	}
	if v.Percent {
		parts = append(parts, "%")
	}
	return strings.Join(parts, " ")
}

// Cells as the tables and the papers have them.
func TestParse(t *testing.T) {
	for cell, want := range map[string]string{
		"1,234": "_ 1234 _", "2.68M": "_ 2680000 _", "+39.1 %": "_ 39.1 _ %", "-11.5": "_ -11.5 _", "1.3e8": "_ 130000000 _", "25 %": "_ 25 _ %",
		"1.2 to 6": "1.2 _ 6", "at most +5.4 %": "_ _ 5.4 %", "over 0.5": "0.5 _ _", "under 4": "_ _ 4", "below 1": "_ _ 1", "within 15 %": "_ _ 15 %",
		"nearly 100 %": "_ 100 _ %", "5, 5": "_ 5 _", "100 %, 100 %": "_ 100 _ %", "all, all": "_ 1 _", "3 of 4": "_ 0.75 _", "19 of 20, 20 left": "_ 0.95 _",
	} {
		if v, ok := Parse(cell); !ok || text(v) != want {
			t.Errorf("%q is %s (%v), want %s", cell, text(v), ok, want)
		}
	}
	for _, cell := range []string{"", "-", "n/a", "yes", "vastly less", "almost none", "3, 4", "0 or all", "no (3 of 5)", "A-BB", "1 or 2", "at most all"} {
		if v, ok := Parse(cell); ok {
			t.Errorf("%q is %s", cell, text(v))
		}
	}
}

func TestCompare(t *testing.T) {
	for _, x := range []struct {
		ours, paper string
		scale       float64
		ratio       float64 // NaN: words
		differs     bool
	}{
		{"10", "5", 0, 2, false},
		{"10.1", "5", 0, 2.02, true},
		{"1", "5", 0, 0.2, true},
		{"1,000", "1.2 to 6", 0, 1000.0 / 6, true},
		{"3", "1.2 to 6", 0, 1, false},
		{"0.7", "1.2 to 6", 0, 0.7 / 1.2, false},
		{"1.10", "within 15 %", 0, 1, false},
		{"3.45", "within 15 %", 0, 3, true},
		{"-0.1 %", "at most +5.4 %", 0, 1, false},
		{"500", "1", 0.001, 0.5, false},
		{"0", "0", 0, 1, false},
		{"3", "0", 0, math.NaN(), true},
		{"no (3 of 5)", "no", 0, math.NaN(), false},
		{"yes", "no", 0, math.NaN(), true},
		{"A-BB 3", "A-BB or A-AB", 0, math.NaN(), false},
		{"A-BB 3, F-FA 2", "A-BB or A-AB", 0, math.NaN(), true},
	} {
		c, known := Pair{Scale: x.scale}.Compare(x.ours, x.paper)
		same := c.Ratio == x.ratio || math.IsNaN(c.Ratio) && math.IsNaN(x.ratio) || math.Abs(c.Ratio-x.ratio) < 1e-9
		if !known || !same || c.Differs != x.differs {
			t.Errorf("%q and %q: %+v, %v", x.ours, x.paper, c, known)
		}
	}
	for _, x := range [][2]string{{"-", "3"}, {"3", "-"}, {"3", "vastly less"}, {"yes", "3"}, {"3", "n/a"}, {"", "yes"}} {
		if c, known := (Pair{}).Compare(x[0], x[1]); known {
			t.Errorf("%q: %+v", x, c)
		}
	}
}

func TestFormat(t *testing.T) {
	for want, c := range map[string]Comparison{
		"1.00": {1, false}, "12.3": {12.34, true}, "1234": {1234.2, true}, "0.02": {0.0199, true}, "0.0002": {0.00021, true}, "-3.00": {-3, true},
		"0": {0, true}, "differs": {math.NaN(), true}, "same": {math.NaN(), false},
	} {
		if got := c.Format(); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}

func sample() *Sheet {
	return New("figure1", "Figure 1", &table.Table{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "plain", Key: "plain", Number: true},
			{Name: "time", Key: "time", Number: true},
			{Name: "paper", Key: "paper_time"},
			{Name: "more", Key: "more", Number: true},
			{Name: "the paper's", Key: "reported"},
		},
		Rows: [][]string{
			{"a", "2", "1000", "+50 %", "10", "20"},
			{"b", "4", "-", "at most +5 %", "5", "-"},
			{"c", "1", "3", "faster", "6", "1 to 2"},
		},
	}, []Pair{{Ours: "more", Paper: "reported"}, {Ours: "missing", Paper: "reported"}}, &Chart{
		Kind: plots.Bars, Columns: []string{"plain", "time"}, Reported: []Reported{{Of: "time", Paper: "paper_time", Times: true}, {Of: "plain", Paper: "reported", More: "plain"}},
	})
}

// Pairs are found by the names of columns, or named, if the table has them; a sheet that is written can be read.
func TestSheet(t *testing.T) {
	s := sample()
	if want := []Pair{{Ours: "more", Paper: "reported"}, {Ours: "time", Paper: "paper_time"}}; !reflect.DeepEqual(s.Pairs, want) {
		t.Errorf("%v, want %v", s.Pairs, want)
	}
	var b bytes.Buffer
	if err := Write(&b, []*Sheet{s}); err != nil {
		t.Fatal(err)
	}
	if again, err := Read(&b); err != nil || len(again) != 1 || !reflect.DeepEqual(again[0], s) {
		t.Errorf("%v: %+v, want %+v", err, again, s)
	}
	for _, wrong := range []string{"", "[", "[null]", `[{"name": "a"}]`, `[{"name": "a", "head": [{}], "rows": [["1", "2"]]}]`, `[{"colour": 1}]`} {
		if _, err := Read(strings.NewReader(wrong)); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
	s.Rows[1][0] = "a"
	if name := s.RowName(1); name != "a 4" {
		t.Errorf("a row whose first cell another has is %q", name)
	}
}

// A missing value has no number, ranges of the paper's have their ends, and values far apart a logarithmic axis.
func TestPlot(t *testing.T) {
	p, err := sample().Plot()
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Series) != 4 || len(p.Categories) != 3 || !p.Y.Log {
		t.Fatalf("%+v", p)
	}
	if time := p.Series[1].Points; *time[0].Y != 1000 || time[1].Y != nil {
		t.Errorf("%+v", time)
	}
	paper := p.Series[2]
	if *paper.Of != 1 || len(paper.Points) != 2 || *paper.Points[0].Y != 1.5 || paper.Points[1].Y != nil || *paper.Points[1].High != 1.05 || paper.Points[1].Low != nil {
		t.Errorf("%+v", paper)
	}
	if more := p.Series[3]; *more.Of != 0 || len(more.Points) != 2 || *more.Points[0].Y != 2*1.2 || *more.Points[1].Low != 1.01 || *more.Points[1].High != 1.02 || more.Points[1].X != 2 {
		t.Errorf("%+v", more)
	}
	s := sample()
	s.Chart.Reported = []Reported{{Of: "plain", Paper: "paper_time", Slower: "plain"}}
	if p, err = s.Plot(); err != nil || math.Abs(*p.Series[2].Points[0].Y-2/1.5) > 1e-9 || math.Abs(*p.Series[2].Points[1].Low-4/1.05) > 1e-9 || p.Series[2].Points[1].High != nil {
		t.Errorf("%v: %+v", err, p)
	}
	s.Chart = &Chart{Kind: plots.Lines, Points: true, Over: "plain", Columns: []string{"more"}, Reported: []Reported{{Of: "more", OverPaper: "plain", Paper: "reported", ScaleX: 10, ScaleY: 2}}}
	if p, err = s.Plot(); err != nil || len(p.Series) != 4 || p.Series[3].Points[0].X != 20 || *p.Series[3].Points[0].Y != 40 || *p.Series[3].Of != 0 {
		t.Errorf("%v: %+v", err, p)
	}
	s.Chart.Columns[0] = "none"
	if _, err = s.Plot(); err == nil {
		t.Error("a column that there is not")
	}
}
