package report

import (
	"fmt"
	"path"
)

// Location is races that belong together: at the same variable, at blocks of the heap that the same code
// allocated, or, elsewhere, of the same two functions.
type Location struct {
	// Name says which: "variable total of racy".
	Name string `json:"name"`
	// Races are the places of the races in Report.Races, and Instances counts these.
	Races     []int  `json:"races"`
	Instances uint64 `json:"instances"`
}

// noteLocations groups the races, in the order of the first one of each group.
func (r *Report) noteLocations() {
	places := map[string]int{}
	for i, race := range r.Races {
		name := race.location()
		n, known := places[name]
		if !known {
			n = len(r.Locations)
			places[name] = n
			r.Locations = append(r.Locations, Location{Name: name})
		}
		l := &r.Locations[n]
		l.Races = append(l.Races, i)
		l.Instances += race.Count
	}
}

// location names the group of a race.
func (race *Race) location() string {
	switch p := &race.At; p.Kind {
	case "variable":
		return fmt.Sprintf("variable %s of %s", p.Name, path.Base(p.Image))
	case "block":
		return "blocks that are allocated at " + siteName(p.Made.Stack)
	}
	a, b := functionName(race.First.Stack), functionName(race.Second.Stack)
	if a == b {
		return "accesses in " + a
	}
	return "accesses in " + min(a, b) + " and " + max(a, b)
}

// siteName is where a stack's innermost frame is.
func siteName(stack []Frame) string {
	if len(stack) == 0 {
		return "an unknown place"
	}
	return stack[0].String()
}

// functionName is the function of a stack's innermost frame, or where that is.
func functionName(stack []Frame) string {
	if len(stack) > 0 && stack[0].Function != "" {
		return stack[0].Function
	}
	return siteName(stack)
}
