package draw

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/heddle-dmt/heddle/experiments/plots"
)

// formatTick writes a number briefly: 1500000 as 1.5M.
func formatTick(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, ""}} {
		if math.Abs(v) < unit.size*0.999999 {
			continue
		}
		if unit.name == "" {
			return strconv.FormatFloat(v/1e3, 'g', 6, 64) + "k"
		}
		return strconv.FormatFloat(v/unit.size, 'g', 6, 64) + unit.name
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// linearTicks label the multiples of 1, 2 or 5 times a power of 10, of which four to ten are in the range, and mark those
// of a part of it.
type linearTicks struct{}

func (linearTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	const least = 4
	if !(high > low) {
		return nil
	}
	power := math.Pow(10, math.Floor(math.Log10((high-low)/least)))
	step, parts := power, 5.0
	for _, s := range []struct{ times, parts float64 }{{2, 4}, {5, 5}} {
		if power*s.times*least <= high-low {
			step, parts = power*s.times, s.parts
		}
	}
	// Multiples are counted, since sums of steps would not be exact.
	for n := math.Ceil((low/step - 1e-9) * parts); n <= (high/step+1e-9)*parts; n++ {
		t := plot.Tick{Value: n / parts * step}
		if math.Mod(n, parts) == 0 {
			t.Label = formatTick(round(t.Value, step))
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// round removes the error of a multiple of a step.
func round(v, step float64) float64 {
	digits := max(0, int(math.Ceil(-math.Log10(step)))+1)
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', digits, 64), 64)
	if err != nil || rounded == 0 {
		return 0 // without the sign of a small negative number
	}
	return rounded
}

// logTicks mark 1 to 9 times each power of 10, and label the powers or, of less than two decades, 1, 2
// and 5 times them.
type logTicks struct{}

func (logTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	decades := math.Log10(high / low)
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high*1.000001; power *= 10 {
		for digit := 1.0; digit < 10; digit++ {
			v := power * digit
			if v < low*0.999999 || v > high*1.000001 {
				continue
			}
			t := plot.Tick{Value: v}
			if digit == 1 || decades < 2 && (digit == 2 || digit == 5) || decades < 0.5 {
				t.Label = formatTick(v)
			}
			ticks = append(ticks, t)
		}
	}
	if len(ticks) < 2 { // less than from one digit to the next
		return linearTicks{}.Ticks(low, high)
	}
	return ticks
}

// setRange gives an axis room for numbers; a linear one begins at 0 if zero is asked for.
func setRange(a *plot.Axis, numbers []float64, log, zero bool) {
	a.Tick.Marker = linearTicks{}
	if log {
		a.Scale, a.Tick.Marker = plot.LogScale{}, logTicks{}
	}
	if len(numbers) == 0 {
		a.Min, a.Max = 0, 1
		if log {
			a.Min, a.Max = 1, 10
		}
		return
	}
	low, high := numbers[0], numbers[0]
	for _, v := range numbers {
		low, high = math.Min(low, v), math.Max(high, v)
	}
	switch {
	case log && high/low < 1.5:
		a.Min, a.Max = low/1.5, high*1.5
	case log:
		room := math.Pow(high/low, 0.05)
		a.Min, a.Max = low/room, high*room
	default:
		if zero {
			low, high = math.Min(low, 0), math.Max(high, 0)
		}
		room := 0.05 * (high - low)
		if high == low {
			room = math.Max(math.Abs(high)*0.1, 0.5)
		}
		a.Min, a.Max = low-room, high+room
		if zero && low == 0 {
			a.Min = 0
		}
		if zero && high == 0 && low < 0 {
			a.Max = 0
		}
	}
}

// labelCategories writes the categories, upright where there is no room, and widens the picture
// and makes it higher by them.
func (pic *picture) labelCategories(width, height *vg.Length) {
	if pic.Kind == plots.Lines {
		return
	}
	var ticks []plot.Tick
	style := &pic.plot.X.Tick.Label
	var widest vg.Length
	for i, name := range pic.Categories {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: name})
		widest = max(widest, style.Width(name))
	}
	x := &pic.plot.X
	x.Tick.Marker = plot.ConstantTicks(ticks)
	x.Tick.Length = 0
	x.Min, x.Max = -0.5, float64(len(pic.Categories))-0.5
	room := (*width - 20*vg.Millimeter) / vg.Length(max(len(pic.Categories), 1))
	if widest+vg.Points(4) > room {
		style.Rotation, style.XAlign, style.YAlign = math.Pi/2, draw.XRight, draw.YCenter
		*height += widest
		for i := range ticks {
			ticks[i].Label += " " // between it and the axis
		}
		x.Tick.Marker = plot.ConstantTicks(ticks)
		if line := style.Height("X") * 1.2; line > room {
			*width += (line - room) * vg.Length(len(pic.Categories))
		}
	}
}

// seriesName is the name in the legend; one series without a name needs none.
func (pic *picture) seriesName(i int) string { return strings.TrimSpace(pic.Series[i].Name) }

// noteMissing explains the mark of a missing result, once.
func (pic *picture) noteMissing() {
	if !pic.missing {
		pic.missing = true
		pic.legend.Add("no result", glyphThumbnail{missingGlyph})
	}
}

var missingGlyph = draw.GlyphStyle{Color: lookOf(4).colour, Radius: vg.Points(3), Shape: draw.CrossGlyph{}}

// glyphThumbnail is a point in the legend.
type glyphThumbnail struct{ style draw.GlyphStyle }

func (g glyphThumbnail) Thumbnail(c *draw.Canvas) { c.DrawGlyph(g.style, c.Center()) }
