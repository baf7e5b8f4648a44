package draw

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/heddle-dmt/heddle/experiments/plots"
)

// painter is a plotter that is a function; toX and toY give the places of numbers.
type painter func(c draw.Canvas, toX, toY func(float64) vg.Length, p *plot.Plot)

// Plot implements plot.Plotter.
func (f painter) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	f(c, toX, toY, p)
}

// values are all numbers that the y axis must hold.
func (pic *picture) values() (numbers []float64) {
	for _, s := range pic.Series {
		for _, p := range pic.all(s) {
			numbers = append(numbers, p.y)
		}
	}
	if pic.Reference != nil {
		numbers = append(numbers, *pic.Reference)
	}
	return numbers
}

var (
	gridLine      = draw.LineStyle{Color: color.Gray{225}, Width: vg.Points(0.5)}
	referenceLine = draw.LineStyle{Color: color.Gray{120}, Width: vg.Points(0.8), Dashes: []vg.Length{vg.Points(3), vg.Points(2)}}
)

// addGround adds the grid, and the lines to compare with.
func (pic *picture) addGround() {
	pic.plot.Add(painter(func(c draw.Canvas, _, toY func(float64) vg.Length, p *plot.Plot) {
		for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
			if t.Label != "" && t.Value >= p.Y.Min && t.Value <= p.Y.Max {
				c.StrokeLine2(gridLine, c.Min.X, toY(t.Value), c.Max.X, toY(t.Value))
			}
		}
		if r := pic.Reference; r != nil {
			c.StrokeLine2(referenceLine, c.Min.X, toY(*r), c.Max.X, toY(*r))
		}
	}))
}

// addLines adds points over numbers, with lines between neighbours.
func (pic *picture) addLines() {
	var xs []float64
	for _, s := range pic.Series {
		for _, p := range s.Points {
			if !slices.Contains(xs, p.X) {
				xs = append(xs, p.X)
			}
		}
	}
	slices.Sort(xs)
	ys := pic.values()
	setRange(&pic.plot.X, xs, pic.X.Log, false)
	setRange(&pic.plot.Y, ys, pic.Y.Log, true)
	if len(xs) <= 12 && areShort(xs) { // the values themselves
		pic.plot.X.Tick.Marker = valueTicks(xs, pic.X.Log)
	}
	pic.addGround()
	if pic.Diagonal {
		pic.addDiagonal()
	}
	for i, s := range pic.Series {
		if s.Of != nil {
			pic.addCompared(s, 0, lookOf(*s.Of).colour)
			continue
		}
		look := lookOf(i)
		points := slices.Clone(s.Points)
		slices.SortStableFunc(points, func(a, b plots.Point) int { return int(math.Copysign(1, a.X-b.X)) })
		pic.plot.Add(painter(func(c draw.Canvas, toX, toY func(float64) vg.Length, p *plot.Plot) {
			var line []vg.Point
			for _, pt := range points {
				x := toX(pt.X)
				if pt.Y == nil {
					c.StrokeLines(look.line, line)
					line = nil
					c.DrawGlyph(withColour(missingGlyph, look.colour), vg.Point{X: x, Y: c.Min.Y})
					continue
				}
				if low, high, ok := pic.interval(pt); ok {
					drawErrorBar(c, look.colour, x, toY(low), toY(high))
				}
				at := vg.Point{X: x, Y: toY(*pt.Y)}
				line = append(line, at)
				c.DrawGlyph(look.glyph, at)
			}
			c.StrokeLines(look.line, line)
		}))
		if name := pic.seriesName(i); name != "" && len(points) == 1 { // no line
			pic.legend.Add(name, glyphThumbnail{look.glyph})
		} else if name != "" {
			pic.legend.Add(name, lineThumbnail{look})
		}
	}
	pic.noteAllMissing()
}

// areShort reports whether the labels of numbers have few characters, so that neighbours do not touch.
func areShort(xs []float64) bool {
	return !slices.ContainsFunc(xs, func(x float64) bool { return len(formatTick(x)) > 5 })
}

// closest is the least distance of two labels, as a part of the axis.
const closest = 0.04

// valueTicks label numbers in ascending order, but for numbers too close to the label before.
func valueTicks(xs []float64, log bool) plot.ConstantTicks {
	at := func(x float64) float64 { return x }
	if log {
		at = math.Log
	}
	var ticks plot.ConstantTicks
	last := math.Inf(-1)
	for _, x := range xs {
		t := plot.Tick{Value: x}
		if room := closest * (at(xs[len(xs)-1]) - at(xs[0])); at(x)-last >= room {
			t.Label, last = formatTick(x), at(x)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

func (pic *picture) addDiagonal() {
	pic.plot.Add(painter(func(c draw.Canvas, toX, toY func(float64) vg.Length, p *plot.Plot) {
		low, high := math.Max(p.X.Min, p.Y.Min), math.Min(p.X.Max, p.Y.Max)
		if low < high {
			c.StrokeLine2(referenceLine, toX(low), toY(low), toX(high), toY(high))
		}
	}))
	pic.legend.Add("y = x", lineThumbnail{look{line: referenceLine, glyph: draw.GlyphStyle{Shape: noGlyph{}}}})
}

// noteAllMissing explains the mark if any series needs it.
func (pic *picture) noteAllMissing() {
	for _, s := range pic.Series {
		for _, p := range s.Points {
			if p.Y == nil && len(p.Sample) == 0 && s.Of == nil {
				pic.noteMissing()
			}
		}
	}
}

// addCompared adds values to compare those of another series with: diamonds, and ranges, of which an
// open one has a point in its direction.
func (pic *picture) addCompared(s plots.Series, shift float64, colour color.RGBA) {
	thumbnail := comparedThumbnail{colour: colour}
	for _, pt := range s.Points {
		thumbnail.values = thumbnail.values || pt.Y != nil
		thumbnail.ranges = thumbnail.ranges || pt.Y == nil && pt.Low != nil && pt.High != nil
		thumbnail.most = thumbnail.most || pt.Y == nil && pt.Low == nil && pt.High != nil
		thumbnail.least = thumbnail.least || pt.Y == nil && pt.Low != nil && pt.High == nil
	}
	pic.plot.Add(painter(func(c draw.Canvas, toX, toY func(float64) vg.Length, p *plot.Plot) {
		for _, pt := range s.Points {
			x := toX(pt.X + shift)
			switch {
			case pt.Y != nil:
				c.DrawGlyph(comparedGlyph(colour), vg.Point{X: x, Y: toY(*pt.Y)})
			case pt.Low != nil && pt.High != nil:
				drawErrorBar(c, colour, x, toY(*pt.Low), toY(*pt.High))
			case pt.Low != nil:
				drawBound(c, colour, x, toY(*pt.Low), boundReach)
			case pt.High != nil:
				drawBound(c, colour, x, toY(*pt.High), -boundReach)
			}
		}
	}))
	if name := strings.TrimSpace(s.Name); name != "" {
		pic.legend.Add(name, thumbnail)
	}
}

func comparedGlyph(colour color.Color) draw.GlyphStyle {
	return draw.GlyphStyle{Color: colour, Radius: vg.Points(3.4), Shape: diamond{}}
}

// boundReach is the length of the arrow of a range that is open on one side.
const boundReach = vg.Length(9)

// drawBound draws the end of an open range, with an arrow as far into it as the canvas reaches.
func drawBound(c draw.Canvas, colour color.Color, x, y, reach vg.Length) {
	const half = vg.Length(3)
	style := draw.LineStyle{Color: colour, Width: vg.Points(1)}
	to := max(c.Min.Y, min(c.Max.Y, y+reach))
	c.StrokeLine2(style, x-half, y, x+half, y)
	c.StrokeLine2(style, x, y, x, to)
	c.StrokeLine2(style, x-half/2, y+(to-y)*0.6, x, to)
	c.StrokeLine2(style, x+half/2, y+(to-y)*0.6, x, to)
}

// comparedThumbnail has in the legend the marks that compared values have in the plot: a diamond, a range, and arrows
// from the least and from the greatest value that is possible.
type comparedThumbnail struct {
	colour                      color.Color
	values, ranges, least, most bool
}

func (t comparedThumbnail) Thumbnail(c *draw.Canvas) {
	const reach = vg.Length(6.5) // less than the distance of two lines of the legend
	middle := c.Center().Y
	var marks []func(x vg.Length)
	for _, m := range []struct {
		has  bool
		draw func(x vg.Length)
	}{
		{t.values, func(x vg.Length) { c.DrawGlyph(comparedGlyph(t.colour), vg.Point{X: x, Y: middle}) }},
		{t.ranges, func(x vg.Length) { drawErrorBar(*c, t.colour, x, middle-reach/2, middle+reach/2) }},
		{t.least, func(x vg.Length) { drawBound(*c, t.colour, x, middle-reach/2, reach) }},
		{t.most, func(x vg.Length) { drawBound(*c, t.colour, x, middle+reach/2, -reach) }},
	} {
		if m.has {
			marks = append(marks, m.draw)
		}
	}
	for i, mark := range marks {
		mark(c.Min.X + (c.Max.X-c.Min.X)*vg.Length(2*i+1)/vg.Length(2*len(marks)))
	}
}

// diamond is a square on its corner with a white edge, so that it is seen on a bar.
type diamond struct{}

func (diamond) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	for _, layer := range []struct {
		colour color.Color
		radius vg.Length
	}{{color.White, style.Radius + 1}, {style.Color, style.Radius}} {
		r := layer.radius
		c.FillPolygon(layer.colour, []vg.Point{{X: at.X - r, Y: at.Y}, {X: at.X, Y: at.Y + r}, {X: at.X + r, Y: at.Y}, {X: at.X, Y: at.Y - r}})
	}
}

type noGlyph struct{}

func (noGlyph) DrawGlyph(*draw.Canvas, draw.GlyphStyle, vg.Point) {}

func withColour(g draw.GlyphStyle, c color.Color) draw.GlyphStyle {
	g.Color = c
	return g
}

// drawErrorBar draws a vertical line with short ones at its ends.
func drawErrorBar(c draw.Canvas, colour color.Color, x, low, high vg.Length) {
	style := draw.LineStyle{Color: colour, Width: vg.Points(0.8)}
	half := vg.Points(2.2)
	c.StrokeLine2(style, x, low, x, high)
	c.StrokeLine2(style, x-half, low, x+half, low)
	c.StrokeLine2(style, x-half, high, x+half, high)
}

// lineThumbnail is a line with its point in the legend.
type lineThumbnail struct{ look look }

func (l lineThumbnail) Thumbnail(c *draw.Canvas) {
	y := c.Center().Y
	c.StrokeLine2(l.look.line, c.Min.X, y, c.Max.X, y)
	c.DrawGlyph(l.look.glyph, c.Center())
}

// areaThumbnail is a filled area in the legend.
type areaThumbnail struct{ colour color.Color }

func (a areaThumbnail) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(a.colour, []vg.Point{c.Min, {X: c.Min.X, Y: c.Max.Y}, c.Max, {X: c.Max.X, Y: c.Min.Y}})
}

// own is the number of series that are not compared with others.
func (pic *picture) own() (n int) {
	for _, s := range pic.Series {
		if s.Of == nil {
			n++
		}
	}
	return n
}

// slot is the middle, and half of the width, of a series' place in a category, as parts of a category.
func (pic *picture) slot(series int) (middle, half float64) {
	n := float64(pic.own())
	share := 0.84 / n
	return (float64(series) - (n-1)/2) * share, share * 0.45
}

// addBars adds groups of bars.
func (pic *picture) addBars() {
	setRange(&pic.plot.Y, pic.values(), pic.Y.Log, true)
	pic.addGround()
	for i, s := range pic.Series {
		if s.Of != nil {
			middle, _ := pic.slot(*s.Of)
			pic.addCompared(s, middle, color.RGBA{A: 255})
			continue
		}
		colour := lookOf(i).colour
		middle, half := pic.slot(i)
		pic.plot.Add(painter(func(c draw.Canvas, toX, toY func(float64) vg.Length, p *plot.Plot) {
			base := toY(p.Y.Min)
			if !pic.Y.Log {
				base = toY(math.Max(p.Y.Min, math.Min(p.Y.Max, 0)))
			}
			for _, pt := range s.Points {
				left, x, right := toX(pt.X+middle-half), toX(pt.X+middle), toX(pt.X+middle+half)
				if pt.Y == nil {
					c.DrawGlyph(withColour(missingGlyph, colour), vg.Point{X: x, Y: base + vg.Points(4)})
					continue
				}
				top := toY(*pt.Y)
				c.FillPolygon(colour, []vg.Point{{X: left, Y: base}, {X: left, Y: top}, {X: right, Y: top}, {X: right, Y: base}})
				if low, high, ok := pic.interval(pt); ok {
					drawErrorBar(c, color.Gray{60}, x, toY(low), toY(high))
				}
			}
		}))
		if name := pic.seriesName(i); name != "" {
			pic.legend.Add(name, areaThumbnail{colour})
		}
	}
	pic.noteAllMissing()
}

// addBoxes adds distributions after Tukey: whiskers reach to the last number within 1.5 times the
// distance of the quartiles; numbers outside are points.
func (pic *picture) addBoxes() {
	setRange(&pic.plot.Y, pic.values(), pic.Y.Log, false)
	pic.addGround()
	for i, s := range pic.Series {
		look := lookOf(i)
		middle, half := pic.slot(i)
		line := draw.LineStyle{Color: look.colour, Width: vg.Points(1)}
		median := draw.LineStyle{Color: look.colour, Width: vg.Points(2)}
		pic.plot.Add(painter(func(c draw.Canvas, toX, toY func(float64) vg.Length, p *plot.Plot) {
			for _, pt := range s.Points {
				left, x, right := toX(pt.X+middle-half), toX(pt.X+middle), toX(pt.X+middle+half)
				if len(pt.Sample) == 0 {
					c.DrawGlyph(withColour(missingGlyph, look.colour), vg.Point{X: x, Y: c.Min.Y + vg.Points(4)})
					continue
				}
				b := summarize(pt.Sample)
				c.StrokeLines(line, []vg.Point{
					{X: left, Y: toY(b.q1)}, {X: left, Y: toY(b.q3)}, {X: right, Y: toY(b.q3)}, {X: right, Y: toY(b.q1)}, {X: left, Y: toY(b.q1)},
				})
				c.StrokeLine2(median, left, toY(b.median), right, toY(b.median))
				c.StrokeLine2(line, x, toY(b.q3), x, toY(b.high))
				c.StrokeLine2(line, x, toY(b.q1), x, toY(b.low))
				for _, v := range b.outside {
					c.DrawGlyph(draw.GlyphStyle{Color: look.colour, Radius: vg.Points(1.6), Shape: draw.RingGlyph{}}, vg.Point{X: x, Y: toY(v)})
				}
			}
		}))
		if name := pic.seriesName(i); name != "" {
			pic.legend.Add(name, areaThumbnail{look.colour})
		}
	}
	pic.noteAllMissing()
}

// box summarises a distribution.
type box struct {
	q1, median, q3, low, high float64
	outside                   []float64
}

func summarize(sample []float64) box {
	sorted := slices.Sorted(slices.Values(sample))
	at := func(p float64) float64 {
		i := p * float64(len(sorted)-1)
		low := min(int(i), len(sorted)-1)
		high := min(low+1, len(sorted)-1)
		return sorted[low] + (i-float64(low))*(sorted[high]-sorted[low])
	}
	b := box{q1: at(0.25), median: at(0.5), q3: at(0.75)}
	reach := 1.5 * (b.q3 - b.q1)
	b.low, b.high = b.q1, b.q3
	for _, v := range sorted {
		if v < b.q1-reach || v > b.q3+reach {
			b.outside = append(b.outside, v)
			continue
		}
		b.low, b.high = math.Min(b.low, v), math.Max(b.high, v)
	}
	return b
}

// ramp are the colours of a heat map, light to dark in equal steps of lightness: viridis of Matplotlib,
// reversed.
var ramp = []color.RGBA{
	{253, 231, 37, 255},
	{181, 222, 43, 255},
	{110, 206, 88, 255},
	{53, 183, 121, 255},
	{31, 158, 137, 255},
	{38, 130, 142, 255},
	{49, 104, 142, 255},
	{62, 73, 137, 255},
	{72, 40, 120, 255},
	{68, 1, 84, 255},
}

// colourOf is the colour of a share from 0 to 1.
func colourOf(share float64) color.RGBA {
	at := math.Max(0, math.Min(1, share)) * float64(len(ramp)-1)
	i := min(int(at), len(ramp)-2)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (at-float64(i))*(float64(b)-float64(a)))) }
	a, b := ramp[i], ramp[i+1]
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// addCells adds the cells of a heat map, each with its value as a text.
func (pic *picture) addCells() {
	y := &pic.plot.Y
	var ticks plot.ConstantTicks
	for i, name := range pic.Rows {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: name})
	}
	y.Tick.Marker, y.Tick.Length = ticks, 0
	y.Min, y.Max = -0.5, float64(len(pic.Rows))-0.5
	scale := func(v float64) float64 { return v }
	if pic.Value.Log {
		scale = math.Log
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range pic.values() {
		low, high = math.Min(low, v), math.Max(high, v)
	}
	share := func(v float64) float64 {
		if high == low {
			return middle
		}
		return (scale(v) - scale(low)) / (scale(high) - scale(low))
	}
	style := pic.plot.X.Tick.Label
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	pic.plot.Add(painter(func(c draw.Canvas, toX, toY func(float64) vg.Length, p *plot.Plot) {
		for row, s := range pic.Series {
			for _, pt := range s.Points {
				at := vg.Point{X: toX(pt.X), Y: toY(float64(row))}
				if pt.Y == nil {
					c.DrawGlyph(missingGlyph, at)
					continue
				}
				left, right, bottom, top := toX(pt.X-0.48), toX(pt.X+0.48), toY(float64(row)-0.48), toY(float64(row)+0.48)
				colour := colourOf(share(*pt.Y))
				c.FillPolygon(colour, []vg.Point{{X: left, Y: bottom}, {X: left, Y: top}, {X: right, Y: top}, {X: right, Y: bottom}})
				text := style
				text.Color = color.Black
				if share(*pt.Y) > 0.45 {
					text.Color = color.White
				}
				c.FillText(text, at, shortNumber(*pt.Y))
			}
		}
	}))
	pic.addScale(low, high, scale)
	pic.noteAllMissing()
}

// middle is the place in the scale of colours of a value that all places have.
const middle = 0.5

// addScale explains the colours in the legend.
func (pic *picture) addScale(low, high float64, scale func(float64) float64) {
	pic.legend.Add(pic.Value.Title, areaThumbnail{color.White})
	switch {
	case low > high:
		return
	case low == high:
		pic.legend.Add(shortNumber(low), areaThumbnail{colourOf(middle)})
		return
	}
	const steps = 4
	for i := steps; i >= 0; i-- {
		share := float64(i) / steps
		v := low + share*(high-low)
		if pic.Value.Log {
			v = low * math.Pow(high/low, share)
		}
		pic.legend.Add(shortNumber(v), areaThumbnail{colourOf(share)})
	}
}

// shortNumber has three digits.
func shortNumber(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if math.Abs(v) >= unit.size {
			if unit.name == "k" {
				unit.size = 1e3
			}
			return fmt.Sprintf("%.3g%s", v/unit.size, unit.name)
		}
	}
	if math.Abs(v) >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
