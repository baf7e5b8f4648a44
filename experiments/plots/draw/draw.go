// Package draw draws the plots of package plots as SVG, PDF and PNG.
//
// Nothing is clipped: the picture is as large as its title, its legend, its bars and their labels
// need, the legend is beside the plot, and the axes hold all points with their error bars. Series
// differ in colour and, for readers who do not see it, in the shape of points and lines. A point
// without a result is a cross on the axis, which the legend explains.
package draw

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	// The formats of the files.
	_ "gonum.org/v1/plot/vg/vgimg"
	_ "gonum.org/v1/plot/vg/vgpdf"
	_ "gonum.org/v1/plot/vg/vgsvg"

	"github.com/heddle-dmt/heddle/experiments/plots"
)

// problem is why a plot cannot be drawn.
type problem string

func (p problem) Error() string { return string(p) }

// palette are the colours of series: those of Okabe and Ito (Color Universal Design, 2008) without
// the yellow, which is faint on white, and five darker ones.
var palette = []color.RGBA{
	{0, 114, 178, 255},
	{213, 94, 0, 255},
	{0, 158, 115, 255},
	{204, 121, 167, 255},
	{0, 0, 0, 255},
	{86, 180, 233, 255},
	{230, 159, 0, 255},
	{136, 34, 85, 255},
	{153, 153, 51, 255},
	{51, 34, 136, 255},
	{102, 17, 0, 255},
	{150, 150, 150, 255},
}

var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}, draw.PlusGlyph{},
}

var dashes = [][]vg.Length{nil, {vg.Points(5), vg.Points(2)}, {vg.Points(1.5), vg.Points(2)}, {vg.Points(6), vg.Points(2), vg.Points(1.5), vg.Points(2)}}

// look is the style of a series. Series differ in colour up to the twelfth and in shape up to the
// eighty-fourth.
type look struct {
	colour color.RGBA
	glyph  draw.GlyphStyle
	line   draw.LineStyle
}

func lookOf(i int) look {
	c := palette[i%len(palette)]
	return look{
		c,
		draw.GlyphStyle{Color: c, Radius: vg.Points(2.6), Shape: shapes[i%len(shapes)]},
		draw.LineStyle{Color: c, Width: vg.Points(1.2), Dashes: dashes[i/len(palette)%len(dashes)]},
	}
}

// Sizes of a picture.
const (
	textSize   = 9
	plotWidth  = 120 * vg.Millimeter
	plotHeight = 80 * vg.Millimeter
	barSize    = 4 * vg.Millimeter
	leastBar   = 1.5 * vg.Millimeter
	barsWidth  = 220 * vg.Millimeter // from which on bars are narrower than barSize
	boxSize    = 6 * vg.Millimeter
	cellSize   = 13 * vg.Millimeter
	edge       = 4 * vg.Millimeter
	legendGap  = 4 * vg.Millimeter
)

// picture is a plot that is being drawn.
type picture struct {
	plots.Plot
	plot    *plot.Plot
	legend  plot.Legend
	missing bool // the legend explains the mark of a missing result
}

// Picture is a plot that is ready to be drawn, with the size that it needs.
type Picture struct {
	pic           *picture
	Width, Height vg.Length
	side          vg.Length // the legend's width, with its distance from the plot
}

// New lays a plot out.
func New(p plots.Plot) (*Picture, error) {
	pic := &picture{Plot: p, plot: plot.New(), legend: plot.NewLegend()}
	if err := pic.check(); err != nil {
		return nil, err
	}
	pic.style()
	width, height := pic.addContent()
	pic.labelCategories(&width, &height)
	return pic.layOut(width, height), nil
}

// Write writes the plot in one of plots.Formats.
func Write(w io.Writer, p plots.Plot, format string) error {
	pic, err := New(p)
	if err != nil {
		return err
	}
	canvas, err := draw.NewFormattedCanvas(pic.Width, pic.Height, format)
	if err != nil {
		return err
	}
	pic.Draw(draw.New(canvas))
	if format == "svg" {
		return writeSVG(w, canvas)
	}
	_, err = canvas.WriteTo(w)
	return err
}

// writeSVG writes a canvas with fonts of the same widths for viewers without the one that texts were laid out with: an
// SVG has its name, not its letters.
func writeSVG(w io.Writer, canvas io.WriterTo) error {
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return err
	}
	const family = "font-family:Liberation Sans"
	_, err := w.Write(bytes.ReplaceAll(text.Bytes(), []byte(family), []byte(family+",Arimo,Arial,Helvetica,sans-serif")))
	return err
}

// check finds numbers that cannot be drawn.
func (pic *picture) check() error {
	for _, s := range pic.Series {
		for _, pt := range pic.all(s) {
			switch {
			case s.Of != nil && (*s.Of < 0 || *s.Of >= len(pic.Series) || pic.Series[*s.Of].Of != nil):
				return problem(fmt.Sprintf("%s is compared with series %d, which the plot does not have", s.Name, *s.Of))
			case math.IsNaN(pt.y) || math.IsInf(pt.y, 0) || math.IsNaN(pt.x) || math.IsInf(pt.x, 0):
				return problem(fmt.Sprintf("a value of %s is not a finite number", s.Name))
			case pic.Y.Log && pic.Kind != plots.Heatmap && pt.y <= 0, pic.Value.Log && pic.Kind == plots.Heatmap && pt.y <= 0:
				return problem(fmt.Sprintf("%s has the value %g, which a logarithmic axis does not have: leave out the logarithm of y", s.Name, pt.y))
			case pic.X.Log && pic.Kind == plots.Lines && pt.x <= 0:
				return problem(fmt.Sprintf("%s has a point at x = %g, which a logarithmic axis does not have: leave out the logarithm of x", s.Name, pt.x))
			}
		}
	}
	return nil
}

// place is a point of the picture.
type place struct{ x, y float64 }

// all lists the points, and the ends of error bars, that axes must hold.
func (pic *picture) all(s plots.Series) (list []place) {
	for _, p := range s.Points {
		for _, y := range p.Sample {
			list = append(list, place{p.X, y})
		}
		if s.Of != nil {
			for _, end := range []*float64{p.Low, p.High} {
				if end != nil {
					list = append(list, place{p.X, *end})
				}
			}
		}
		if p.Y == nil {
			continue
		}
		list = append(list, place{p.X, *p.Y})
		if low, high, ok := pic.interval(p); ok {
			list = append(list, place{p.X, low}, place{p.X, high})
		}
	}
	return list
}

// interval is a point's error bar; on a logarithmic axis one that reaches 0 or less begins at
// a tenth of the value.
func (pic *picture) interval(p plots.Point) (low, high float64, ok bool) {
	if p.Y == nil || p.Low == nil || p.High == nil {
		return 0, 0, false
	}
	low, high = *p.Low, *p.High
	if pic.Y.Log && low <= 0 {
		low = *p.Y / 10
	}
	return low, high, true
}

func (pic *picture) style() {
	p := pic.plot
	size := func(f *font.Font, points float64) { f.Size = vg.Points(points); f.Variant = "Sans" }
	size(&p.Title.TextStyle.Font, textSize+2)
	size(&p.X.Label.TextStyle.Font, textSize)
	size(&p.Y.Label.TextStyle.Font, textSize)
	size(&p.X.Tick.Label.Font, textSize-1)
	size(&p.Y.Tick.Label.Font, textSize-1)
	size(&pic.legend.TextStyle.Font, textSize-1)
	p.Title.Text, p.X.Label.Text = pic.Title, pic.X.Title
	if !pic.Y.Log { // Draw writes the others: gonum leaves room for one in the middle of the numbers, which is near the top
		p.Y.Label.Text = pic.Y.Title
	}
	p.Title.Padding = vg.Points(6)
	p.X.Padding, p.Y.Padding = vg.Points(2), vg.Points(2)
	pic.legend.ThumbnailWidth = 8 * vg.Millimeter
	pic.legend.Padding = vg.Points(2)
	pic.legend.Left = true
	pic.legend.Top = true
}

// addContent adds the series, and returns the size of the picture without its legend.
func (pic *picture) addContent() (width, height vg.Length) {
	n := vg.Length(max(pic.own(), 1))
	groups := vg.Length(len(pic.Categories))
	switch pic.Kind {
	case plots.Bars:
		pic.addBars()
		bar := min(barSize, max(leastBar, barsWidth/(groups*(n+1))))
		return max(plotWidth, groups*(n+1)*bar+20*vg.Millimeter), plotHeight
	case plots.Boxes:
		pic.addBoxes()
		return max(plotWidth, groups*(n+0.6)*boxSize+20*vg.Millimeter), plotHeight
	case plots.Heatmap:
		pic.addCells()
		return groups*cellSize + 35*vg.Millimeter, vg.Length(len(pic.Rows))*cellSize*0.7 + 35*vg.Millimeter
	}
	pic.addLines()
	return plotWidth, plotHeight
}

// layOut finds the size of the picture with its legend on the right.
func (pic *picture) layOut(width, height vg.Length) *Picture {
	p := pic.plot
	legend := pic.legend.Rectangle(draw.Canvas{Rectangle: vg.Rectangle{Max: vg.Point{X: width, Y: height}}})
	side := legend.Size()
	if side.X > 0 {
		side.X += legendGap
	}
	for _, text := range []struct {
		style interface{ Width(string) vg.Length }
		text  string
		along *vg.Length
	}{{p.Title.TextStyle, pic.Title, &width}, {p.X.Label.TextStyle, pic.X.Title, &width}, {p.Y.Label.TextStyle, pic.Y.Title, &height}} {
		*text.along = max(*text.along, text.style.Width(text.text)+30*vg.Millimeter)
	}
	height = max(height, side.Y+2*edge)
	return &Picture{pic: pic, Width: width + side.X + 2*edge, Height: height + 2*edge, side: side.X}
}

// Draw draws the picture on a canvas of its size.
func (x *Picture) Draw(dc draw.Canvas) {
	p := x.pic.plot
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	inner := draw.Crop(dc, edge, -edge, edge, -edge)
	area := draw.Crop(inner, 0, -x.side, 0, 0)
	if title := x.pic.Y.Title; x.pic.Y.Log && title != "" {
		style := p.Y.Label.TextStyle
		area = draw.Crop(area, style.Height(title)+p.Y.Padding, 0, 0, 0)
		data := p.DataCanvas(area)
		at := vg.Point{X: inner.Min.X + style.Height(title) - style.FontExtents().Descent, Y: data.Center().Y}
		style.Rotation += math.Pi / 2
		inner.FillText(style, at, title)
	}
	p.Draw(area)
	x.pic.legend.Draw(draw.Crop(inner, inner.Size().X-x.side+legendGap, 0, 0, -p.Title.TextStyle.Height(x.pic.Title)-vg.Points(6)))
}
