package races

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// testdata/races.txt has cases separated by blank lines: the order, omit-repeats or not, the steps of
// threads (THREAD OPERATION OPERAND, numbered from 0), a line ---- and the races: the two steps,
// their kind and the variable. Variables have four bytes; x:2 is the first two of x.
func TestRacesOfText(t *testing.T) {
	text, err := os.ReadFile("testdata/races.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "\n\n") {
		name, m, trace, want := parseCase(t, block)
		var got []string
		for _, race := range found(m, trace) {
			got = append(got, race[:strings.LastIndex(race, " @")])
		}
		if g := strings.Join(got, "\n"); g != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, g, want)
		}
	}
}

// parseCase takes a case apart.
func parseCase(t *testing.T, block string) (name string, m mode, trace []step, want string) {
	t.Helper()
	input, want, _ := strings.Cut(strings.TrimSpace(block), "\n----")
	names := map[string]uint64{}
	for _, line := range strings.Split(input, "\n") {
		words := strings.Fields(line)
		switch {
		case words[0] == "#":
			name = strings.Join(words[1:], " ")
		case words[0] == "happens-before":
			m.order = HappensBefore
		case words[0] == "schedule-relative":
			m.order = ScheduleRelative
		case words[0] == "omit-repeats":
			m.omits = true
		default:
			s := step{op: words[1], size: 4}
			if _, err := fmt.Sscan(words[0], &s.thread); err != nil || len(words) != 3 {
				t.Fatalf("%s: %q is no step", name, line)
			}
			if s.op == "fork" || s.op == "join" {
				fmt.Sscan(words[2], &s.other)
			} else {
				variable, size, part := strings.Cut(words[2], ":")
				if part {
					fmt.Sscan(size, &s.size)
				}
				if _, known := names[variable]; !known {
					names[variable] = 64 * uint64(len(names)+1)
				}
				s.addr = names[variable]
			}
			trace = append(trace, s)
		}
	}
	return name, m, trace, strings.TrimSpace(want)
}
