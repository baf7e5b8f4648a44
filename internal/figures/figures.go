// Command figures draws the figures of the documents: for each docs/figures/NAME.yaml it writes
// docs/figures/NAME.svg. A test fails while one is older than its text.
//
//	go run ./internal/figures docs/figures
//
// A text describes boxes and the arrows between them, or a sequence of messages between actors.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/heddle-dmt/heddle/internal/outfile"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "figures: name the folder of the figures' texts")
		os.Exit(2)
	}
	drawn, err := drawAll(os.Args[1])
	if err == nil {
		for path, svg := range drawn {
			if err = outfile.WriteBytes(path, svg); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// drawAll draws every figure of a folder; keys are the paths of the pictures.
func drawAll(dir string) (map[string][]byte, error) {
	texts, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	drawn := map[string][]byte{}
	for _, path := range texts {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		svg, err := draw(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		drawn[strings.TrimSuffix(path, ".yaml")+".svg"] = svg
	}
	return drawn, nil
}

// figure is the text of a figure. Sizes are in pixels; the top left corner is 0, 0.
type figure struct {
	Title         string
	Width, Height int
	// Boxes are drawn in their order, so that one that holds others comes before them.
	Boxes  []box
	Arrows []arrow
	// Actors and Messages make a sequence instead: time goes down.
	Actors   []actor
	Messages []message
}

// box is a rectangle with a text.
type box struct {
	ID, Text string
	// At is the left and upper edge, the width and the height.
	At [4]int
	// Style is a key of fills: empty, group (the text is at the top), title (no edge) and others.
	Style string
}

// arrow joins two boxes, by the sides that face each other.
type arrow struct {
	From, To, Text string
	// Both draws a head at each end, Dashed a broken line.
	Both, Dashed bool
	// Shift moves the line sideways, for several between two boxes; Label moves the text along
	// it, from 0 to 1.
	Shift int
	Label float64
}

// actor takes part in a sequence.
type actor struct{ ID, Text string }

// message goes from one actor to another, or is a note on one.
type message struct {
	From, To, Text string
	// Reply draws a broken line; Note is a text beside the actor From; Frame is the title of a
	// part that begins here.
	Reply bool
	Note  string
	Frame string
}

func draw(text []byte) ([]byte, error) {
	var f figure
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	var c canvas
	var err error
	if len(f.Actors) > 0 {
		err = f.drawSequence(&c)
	} else {
		err = f.drawBoxes(&c)
	}
	if err != nil {
		return nil, err
	}
	return c.document(f.Title), nil
}
