package draw

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/plots"
)

func number(v float64) *float64 { return &v }

// samples are plots of all kinds with all that is hard: many series, missing results, four decades, long names,
// error bars, one point, none.
func samples() map[string]plots.Plot {
	lines := plots.Plot{
		Title: "Speed-up of a program with a title that is much longer than the plot is wide, so that it would be cut off on both sides", Kind: plots.Lines,
		X: plots.Axis{Title: "threads", Log: true}, Y: plots.Axis{Title: "speed-up", Log: true}, Diagonal: true,
	}
	for s := range 9 {
		series := plots.Series{Name: fmt.Sprintf("policy=policy-%d", s)}
		for _, n := range []float64{1, 2, 4, 8, 16, 32, 64} {
			p := plots.Point{X: n}
			if !(s == 2 && n == 8) && !(s == 3 && n > 16) {
				v := math.Pow(n, 0.3+0.08*float64(s))
				p.Y, p.Low, p.High = number(v), number(v*0.9), number(v*1.15)
			}
			series.Points = append(series.Points, p)
		}
		lines.Series = append(lines.Series, series)
	}
	linear := lines
	linear.Title, linear.X.Log, linear.Y.Log = "Speed-up", false, false
	bars := plots.Plot{
		Title: "Overhead", Kind: plots.Bars, Y: plots.Axis{Title: "cycles", Log: true}, Reference: number(1),
		Categories: []string{"pbzip2", "a-program-with-a-long-name", "aget", "zstd level=19 threads=16", "quantum", "last"},
	}
	for s := range 8 {
		series := plots.Series{Name: fmt.Sprintf("series %d", s)}
		for c := range bars.Categories {
			p := plots.Point{X: float64(c)}
			if (s+c)%7 != 3 {
				v := math.Pow(10, float64((s*7+c*3)%9)/2)
				p.Y, p.Low, p.High = number(v), number(v*0.7), number(v*1.3)
			}
			series.Points = append(series.Points, p)
		}
		bars.Series = append(bars.Series, series)
	}
	few := bars
	few.Y = plots.Axis{Title: "host time [s]"}
	few.Series, few.Reference, few.Categories = nil, nil, []string{"one", "two", "three"}
	few.Series = []plots.Series{{Points: []plots.Point{{X: 0, Y: number(3)}, {X: 1}, {X: 2, Y: number(-1), Low: number(-2), High: number(1)}}}}
	boxes := plots.Plot{Title: "Distribution over the seeds", Kind: plots.Boxes, Y: plots.Axis{Title: "cycles"}, Categories: []string{"timed", "rr", "random", "pct", "kendo"}}
	for s := range 3 {
		series := plots.Series{Name: fmt.Sprintf("cores=%d", 1<<s)}
		for c := range boxes.Categories {
			p := plots.Point{X: float64(c)}
			for i := range 25 {
				if c == 3 && s == 1 {
					continue
				}
				p.Sample = append(p.Sample, 1e6*(1+0.2*float64(s)+0.3*math.Sin(float64(i*i+c))+math.Pow(float64(i)/25, 9)))
			}
			if len(p.Sample) > 0 {
				p.Y = number(p.Sample[0])
			}
			series.Points = append(series.Points, p)
		}
		boxes.Series = append(boxes.Series, series)
	}
	heat := plots.Plot{
		Title: "Failing runs", Kind: plots.Heatmap, X: plots.Axis{Title: "threads"}, Y: plots.Axis{Title: "policy"}, Value: plots.Axis{Title: "cycles", Log: true},
		Categories: []string{"1", "2", "4", "8", "16"}, Rows: []string{"timed", "round-robin with a long name", "pct"},
	}
	for r := range heat.Rows {
		series := plots.Series{Name: heat.Rows[r]}
		for c := range heat.Categories {
			p := plots.Point{X: float64(c)}
			if r != 1 || c != 3 {
				p.Y = number(math.Pow(10, float64(r+c)))
			}
			series.Points = append(series.Points, p)
		}
		heat.Series = append(heat.Series, series)
	}
	empty := few
	empty.Series = []plots.Series{{Points: []plots.Point{{X: 0}, {X: 1}, {X: 2}}}}
	single := plots.Plot{Title: "One", Kind: plots.Lines, X: plots.Axis{Title: "threads"}, Y: plots.Axis{Title: "cycles"}, Series: []plots.Series{{Points: []plots.Point{{X: 4, Y: number(5e6)}}}}}
	compared := plots.Plot{
		Title: "Time", Kind: plots.Bars, Y: plots.Axis{Title: "times"}, Categories: []string{"number", "range", "least", "most", "none"},
		Series: []plots.Series{{Name: "sync"}, {Name: "hybrid"}},
	}
	for c := range compared.Categories {
		for s := range compared.Series {
			compared.Series[s].Points = append(compared.Series[s].Points, plots.Point{X: float64(c), Y: number(float64(2 + s + c))})
		}
	}
	hybrid := 1
	compared.Series = append(compared.Series, plots.Series{Name: "paper: hybrid", Of: &hybrid, Points: []plots.Point{
		{X: 0, Y: number(1.5)}, {X: 1, Low: number(1.2), High: number(14)}, {X: 2, Low: number(1)}, {X: 3, High: number(12)},
	}})
	first := 0
	over := plots.Plot{Title: "Points", Kind: plots.Lines, X: plots.Axis{Title: "bytes", Log: true}, Y: plots.Axis{Title: "ms", Log: true}, Series: []plots.Series{
		{Name: "fft", Points: []plots.Point{{X: 10, Y: number(2)}}},
		{Name: "lu", Points: []plots.Point{{X: 100, Y: number(3)}}},
		{Name: "paper: fft", Of: &first, Points: []plots.Point{{X: 1e6, Y: number(2e5)}}},
	}}
	return map[string]plots.Plot{"compared": compared, "over": over, "lines": lines, "linear": linear, "bars": bars, "few": few, "boxes": boxes, "heat": heat, "empty": empty, "single": single}
}

// drawn draws a plot; with HEDDLE_PLOTS set to a folder, the file is kept there to be looked at.
func drawn(t *testing.T, name string, p plots.Plot, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p, format); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if dir := os.Getenv("HEDDLE_PLOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+"."+format), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// TestNothingIsClipped: the edge of each picture is white, so that nothing reaches over it.
func TestNothingIsClipped(t *testing.T) {
	for name, p := range samples() {
		img, err := png.Decode(bytes.NewReader(drawn(t, name, p, "png")))
		if err != nil {
			t.Fatal(err)
		}
		size := img.Bounds()
		const wide = 5 // pixels, of 96 an inch
		for y := size.Min.Y; y < size.Max.Y; y++ {
			for x := size.Min.X; x < size.Max.X; x++ {
				inside := image.Rect(size.Min.X+wide, size.Min.Y+wide, size.Max.X-wide, size.Max.Y-wide)
				if !(image.Point{x, y}).In(inside) && img.At(x, y) != (color.RGBA{255, 255, 255, 255}) {
					t.Fatalf("%s: the picture of %v has %v at %d, %d", name, size, img.At(x, y), x, y)
				}
			}
		}
	}
}

// TestTexts: the SVG has every name, and the PDF is one.
func TestTexts(t *testing.T) {
	for name, p := range samples() {
		svg := drawn(t, name, p, "svg")
		text := ""
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if c, ok := token.(xml.CharData); ok {
				text += string(c)
			}
		}
		words := append([]string{p.Title, p.Y.Title}, p.Categories...)
		missing := false
		for _, s := range p.Series {
			words = append(words, s.Name)
			for _, pt := range s.Points {
				missing = missing || pt.Y == nil && s.Of == nil
			}
		}
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("%s has no %q", name, word)
			}
		}
		if strings.Contains(text, "no result") != missing {
			t.Errorf("%s: a result is missing: %v", name, missing)
		}
		if pdf := drawn(t, name, p, "pdf"); !bytes.HasPrefix(pdf, []byte("%PDF-")) || !bytes.Contains(pdf, []byte("%%EOF")) {
			t.Errorf("%s is no PDF", name)
		}
	}
}

// TestColoursDiffer by CIE 1976's distance, in which 2.3 can just be seen: the first eight by at
// least 20, and all from white.
func TestColoursDiffer(t *testing.T) {
	for i, a := range palette {
		for j, b := range palette[:i] {
			least := 15.0
			if i < 8 {
				least = 20
			}
			if d := distance(a, b); d < least {
				t.Errorf("colours %d and %d have a distance of %.0f", j, i, d)
			}
		}
		if d := distance(a, color.RGBA{255, 255, 255, 255}); d < 35 {
			t.Errorf("colour %d has a distance of %.0f from white", i, d)
		}
	}
	seen := map[string]bool{}
	for i := range 84 {
		l := lookOf(i)
		key := fmt.Sprintf("%v %v %T", l.colour, l.line.Dashes, l.glyph.Shape)
		if seen[key] {
			t.Errorf("series %d looks like an earlier one", i)
		}
		seen[key] = true
	}
}

// distance is that of two colours of sRGB in L*a*b* under D65.
func distance(a, b color.RGBA) float64 {
	lab := func(c color.RGBA) [3]float64 {
		linear := func(v uint8) float64 {
			if x := float64(v) / 255; x > 0.04045 {
				return math.Pow((x+0.055)/1.055, 2.4)
			} else {
				return x / 12.92
			}
		}
		r, g, b := linear(c.R), linear(c.G), linear(c.B)
		f := func(t float64) float64 {
			if t > 216.0/24389 {
				return math.Cbrt(t)
			}
			return (24389.0/27*t + 16) / 116
		}
		x, y, z := f((0.4124*r+0.3576*g+0.1805*b)/0.9505), f(0.2126*r+0.7152*g+0.0722*b), f((0.0193*r+0.1192*g+0.9505*b)/1.089)
		return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
	}
	p, q := lab(a), lab(b)
	return math.Sqrt((p[0]-q[0])*(p[0]-q[0]) + (p[1]-q[1])*(p[1]-q[1]) + (p[2]-q[2])*(p[2]-q[2]))
}

func TestNumbersThatCannotBeDrawn(t *testing.T) {
	self := 0
	for want, p := range map[string]plots.Plot{
		"which the plot does not have":           {Kind: plots.Bars, Series: []plots.Series{{Of: &self, Points: []plots.Point{{Y: number(1)}}}}},
		"not a finite number":                    {Kind: plots.Bars, Series: []plots.Series{{Points: []plots.Point{{Y: number(math.Inf(1))}}}}},
		"leave out the logarithm of y":           {Kind: plots.Bars, Y: plots.Axis{Log: true}, Series: []plots.Series{{Points: []plots.Point{{Y: number(0)}}}}},
		"leave out the logarithm of x":           {Kind: plots.Lines, X: plots.Axis{Log: true}, Series: []plots.Series{{Points: []plots.Point{{Y: number(1)}}}}},
		"which a logarithmic axis does not have": {Kind: plots.Heatmap, Value: plots.Axis{Log: true}, Series: []plots.Series{{Points: []plots.Point{{Y: number(-1)}}}}},
	} {
		if err := Write(io.Discard, p, "svg"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := Write(io.Discard, samples()["few"], "bmp"); err == nil {
		t.Error("a form that there is not")
	}
}

func TestTicks(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1.5: "1.5", 9999: "9999", 12500: "12.5k", 1e6: "1M", 1.5e9: "1.5G", -2e12: "-2T", 0.001: "0.001"} {
		if got := formatTick(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
	labels := func(low, high float64) (list []string) {
		for _, tick := range (logTicks{}).Ticks(low, high) {
			if tick.Label != "" {
				list = append(list, tick.Label)
			}
		}
		return list
	}
	for want, r := range map[string][2]float64{"1 10 100 1000": {0.9, 1100}, "1 2 5 10 20 50": {0.9, 60}, "2 3 4 5": {1.8, 5.1}} {
		if got := strings.Join(labels(r[0], r[1]), " "); got != want {
			t.Errorf("%v: %q, want %q", r, got, want)
		}
	}
	for want, r := range map[string][2]float64{
		"0 1 2 3 4 5": {0, 5.2}, "0 2 4 6 8 10 12 14 16": {0, 16.9}, "0 20 40 60 80 100": {0, 110}, "0 0.2 0.4 0.6 0.8 1 1.2": {0, 1.38},
		"-2 0 2 4 6": {-3, 6.3}, "0.0001 0.0002 0.0003 0.0004 0.0005": {0.0001, 0.00051}, "0 100k 200k 300k 400k": {0, 440e3},
	} {
		var got []string
		for _, tick := range (linearTicks{}).Ticks(r[0], r[1]) {
			if tick.Label != "" {
				got = append(got, tick.Label)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %q, want %q", r, got, want)
		}
	}
	if ticks := (linearTicks{}).Ticks(3, 3); ticks != nil {
		t.Errorf("an empty range: %v", ticks)
	}
}

func TestBoxes(t *testing.T) {
	// The quartiles of 1 to 9 and 100 by R's quantile are 3.25, 5.5 and 7.75.
	b := summarize([]float64{100, 9, 8, 7, 6, 5, 4, 3, 2, 1})
	if b.q1 != 3.25 || b.median != 5.5 || b.q3 != 7.75 || b.low != 1 || b.high != 9 || len(b.outside) != 1 {
		t.Errorf("%+v", b)
	}
	if b := summarize([]float64{4}); b.q1 != 4 || b.high != 4 || b.outside != nil {
		t.Errorf("%+v", b)
	}
}

// TestLogarithmicAxesAreHigh: a logarithmic axis with a long title begins right below the picture's title, as a linear one does.
func TestLogarithmicAxesAreHigh(t *testing.T) {
	for _, log := range []bool{false, true} {
		p := plots.Plot{
			Title: "Times", Kind: plots.Bars, Y: plots.Axis{Title: "time to check an input [us]", Log: log}, Categories: []string{"a", "b"},
			Series: []plots.Series{{Name: "s", Points: []plots.Point{{X: 0, Y: number(1)}, {X: 1, Y: number(3000)}}}},
		}
		var file bytes.Buffer
		if err := Write(&file, p, "png"); err != nil {
			t.Fatal(err)
		}
		made, err := png.Decode(&file)
		if err != nil {
			t.Fatal(err)
		}
		// The axis is the longest black line of the left fifth.
		longest, top, size := 0, 0, made.Bounds()
		for x := range size.Dx() / 5 {
			length := 0
			for y := range size.Dy() {
				if r, g, b, _ := made.At(x, y).RGBA(); r+g+b > 3*0x8000 {
					length = 0
					continue
				}
				if length++; length > longest {
					longest, top = length, y+1-length
				}
			}
		}
		if share := float64(top) / float64(size.Dy()); share > 0.2 || longest < size.Dy()/2 {
			t.Errorf("logarithmic %v: the axis of %d points begins at %.2f of the height", log, longest, share)
		}
	}
}

// TestScaleOfOneValue: the colour of a value that all places have is that of the legend.
func TestScaleOfOneValue(t *testing.T) {
	p := plots.Plot{Kind: plots.Heatmap, Categories: []string{"1"}, Rows: []string{"rr"}, Series: []plots.Series{{Name: "rr", Points: []plots.Point{{Y: number(7)}}}}}
	var svg bytes.Buffer
	if err := Write(&svg, p, "svg"); err != nil {
		t.Fatal(err)
	}
	r, g, b, _ := colourOf(middle).RGBA()
	if colour := fmt.Sprintf("fill:#%02X%02X%02X", r>>8, g>>8, b>>8); strings.Count(svg.String(), colour) != 2 {
		t.Errorf("%s is not in the cell and the legend:\n%s", colour, svg.String())
	}
}
