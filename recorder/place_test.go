package recorder_test

import (
	"encoding/json"
	"testing"

	"github.com/heddle-dmt/heddle/recorder"
)

// TestPlaces: texts of places are read as what they say, are written as they were, and others are refused.
func TestPlaces(t *testing.T) {
	for text, want := range map[string]recorder.Place{
		"instruction:0":        {Kind: recorder.AtInstruction},
		"instruction:1000":     {Kind: recorder.AtInstruction, N: 1000},
		"instruction:1003:20":  {Kind: recorder.AtInstruction, Thread: 1003, N: 20},
		"time:5":               {Kind: recorder.AtTime, N: 5},
		"function:work:3":      {Kind: recorder.AtCall, Function: "work", N: 3},
		"function:a::b(int):1": {Kind: recorder.AtCall, Function: "a::b(int)", N: 1},
		"request:7":            {Kind: recorder.AtRequest, N: 7},
		"request:8080:100":     {Kind: recorder.AtRequest, Port: 8080, N: 100},
		"connection:65535:1":   {Kind: recorder.AtConnection, Port: 65535, N: 1},
	} {
		got, ok := recorder.ParsePlace(text)
		if !ok || got != want || got.String() != text {
			t.Errorf("%q is read as %+v, %v, and written as %q", text, got, ok, got)
		}
		s := recorder.Stretch{From: got}
		b, err := json.Marshal(s)
		var again recorder.Stretch
		if err != nil || json.Unmarshal(b, &again) != nil || again != s || again.IsWhole() {
			t.Errorf("%q in JSON: %s, %+v, %v", text, b, again, err)
		}
	}
	for _, text := range []string{
		"", "instruction", "instruction:", "instruction:-1", "instruction:x", "instruction:0:5", "instruction:1:2:3", "time:1:2", "time:1.5",
		"function:work", "function::1", "function:work:0", "request:0", "request:70000:1", "request:0:1", "connection:a:1", "main:1", ":1",
		"request:99999999999999999999",
	} {
		if p, ok := recorder.ParsePlace(text); ok {
			t.Errorf("%q is read as %+v", text, p)
		}
	}
	var p recorder.Place
	if err := p.UnmarshalText([]byte("request:x")); err == nil {
		t.Error("a place that is none has no error")
	}
}
