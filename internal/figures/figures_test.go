package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"
)

// Every picture of the documents is up to date with its text.
func TestPicturesAreUpToDate(t *testing.T) {
	drawn, err := drawAll("../../docs/figures")
	if err != nil || len(drawn) == 0 {
		t.Fatal(len(drawn), err)
	}
	for path, svg := range drawn {
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, svg) {
			t.Errorf("%s is out of date (%v): go run ./internal/figures docs/figures", path, err)
		}
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s is no XML: %v", path, err)
			}
		}
	}
}

func TestArrowsJoinFacingSides(t *testing.T) {
	a := [4]int{0, 0, 100, 40}
	for _, c := range []struct {
		b    [4]int
		want [4]int
	}{
		{[4]int{0, 100, 100, 40}, [4]int{50, 40, 50, 100}},    // below
		{[4]int{200, 0, 100, 40}, [4]int{100, 20, 200, 20}},   // to the right
		{[4]int{200, 100, 50, 40}, [4]int{100, 20, 200, 120}}, // neither
	} {
		x1, y1, x2, y2 := join(a, c.b, 0)
		if got := [4]int{x1, y1, x2, y2}; got != c.want {
			t.Errorf("to %v: %v, want %v", c.b, got, c.want)
		}
	}
}

func TestMistakesAreReported(t *testing.T) {
	for text, want := range map[string]string{
		"boxes: [{id: a, at: [0, 0, 10, 10]}]":                                  "outside",
		"width: 50\nheight: 50\nboxes: [{id: a, at: [0, 0, 9, 9], style: big}]": "no style",
		"width: 50\nheight: 50\narrows: [{from: a, to: b}]":                     "no box",
		"actors: [{id: a}]\nmessages: [{from: a, to: b, text: x}]":              "no actor",
		"colour: red": "colour",
	} {
		if _, err := draw([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a sentence with %q", text, err, want)
		}
	}
}
