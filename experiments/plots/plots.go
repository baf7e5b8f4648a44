// Package plots describes plots as data, and has program heddle-plot draw them. Package draw, below this one,
// does the drawing: it is not part of heddle itself, because its fonts would make every start of
// heddle slower.
package plots

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/ownprogram"
)

var (
	errProgram = errs.Define("plot-program",
		"cannot start the program {program}, which draws plots",
		"The program is not in the folder of heddle's own program, in ../lib/heddle beside it, or in PATH.",
		"Build it beside heddle with `make build`, or install the whole package.")
	errDraw = errs.Define("plot-not-drawn",
		"cannot draw {file}",
		"A value does not fit on the axis, or the file cannot be written; the rest of the sentence says which.",
		"Follow the rest of the sentence.")
)

// Program is the name of the program that draws.
const Program = "heddle-plot"

// The kinds of plots.
const (
	Lines   = "lines"   // points over a number, joined by lines
	Bars    = "bars"    // groups of bars over categories
	Boxes   = "boxes"   // distributions over categories: median, quartiles, whiskers, outliers
	Heatmap = "heatmap" // colours over two parameters
)

// Kinds lists the kinds.
func Kinds() []string { return []string{Lines, Bars, Boxes, Heatmap} }

// Formats lists the forms of files, which are the ends of their names.
func Formats() []string { return []string{"svg", "pdf", "png"} }

// Plot is a plot to draw. A value that is missing is marked as missing, never drawn as 0.
type Plot struct {
	Title string `json:"title"`
	Kind  string `json:"kind"`
	X     Axis   `json:"x"`
	Y     Axis   `json:"y"`
	// Categories are the values on the x axis unless the kind is Lines; Rows those on the y axis
	// of a heat map.
	Categories []string `json:"categories,omitempty"`
	Rows       []string `json:"rows,omitempty"`
	Series     []Series `json:"series"`
	// Value describes the colours of a heat map.
	Value Axis `json:"value"`
	// Reference, unless nil, is a horizontal line, such as 1 under ratios. Diagonal draws y = x.
	Reference *float64 `json:"reference,omitempty"`
	Diagonal  bool     `json:"diagonal,omitempty"`
}

// Axis is an axis; its title has the unit.
type Axis struct {
	Title string `json:"title"`
	Log   bool   `json:"log,omitempty"`
}

// Series is a line, a colour of bars or boxes or, in a heat map, a row.
type Series struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`
	// Of, unless nil, is the number of another series of a plot of lines or bars, with whose values these
	// are to be compared, such as those that a paper reports: each is a diamond at the place of that series.
	// They are after that series. A point without Y is a range between Low and High, of which one may be missing if it is open on that side.
	Of *int `json:"of,omitempty"`
}

// Point is a value over X or, where there are categories, over the X-th of them.
type Point struct {
	X float64 `json:"x"`
	// Y is nil if there is no result. Low and High are the ends of an error bar, if both are there.
	Y    *float64 `json:"y"`
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// Sample are the numbers of a distribution.
	Sample []float64 `json:"sample,omitempty"`
}

// Request is the message to the program.
type Request struct {
	Plot  Plot     `json:"plot"`
	Files []string `json:"files"`
}

// Draw writes the plot to files, whose names end in a form of Formats.
func Draw(p Plot, files []string) error {
	text, err := json.Marshal(Request{p, files})
	if err != nil {
		return errDraw.Wrap(err, strings.Join(files, ", "))
	}
	err = ownprogram.Run(bytes.NewReader(text), nil, Program)
	var failure ownprogram.Failure
	switch {
	case errors.As(err, &failure):
		return errDraw.Wrap(failure, strings.Join(files, ", "))
	case err != nil:
		return errProgram.Wrap(err, Program)
	}
	return nil
}

// IsInstalled reports whether the program can be found.
func IsInstalled() bool {
	_, err := exec.LookPath(ownprogram.Find(Program))
	return err == nil
}
