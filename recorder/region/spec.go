package region

import (
	"fmt"
	"strings"
)

// Kind is how a region is named.
type Kind uint8

const (
	// Auto is from the creation of the second thread to the last end of a thread after which one is left.
	Auto Kind = iota
	// Marks is from heddle_region_begin of heddle.h to heddle_region_end.
	Marks
	// TaskMarks is from heddle_task_begin to heddle_task_end.
	TaskMarks
	// Function is from the entry of a function to its return.
	Function
	// Calls is from the entry of a function to the entry of another one.
	Calls
	// Nowhere is no region: a Watcher of it only observes declarations of state. It has no text.
	Nowhere
)

// Spec names a region.
type Spec struct {
	Kind Kind
	// From is the name of a function, demangled or as it is in the file, and To the one at whose entry Calls ends.
	From, To string
}

// Forms describes the texts that Parse takes.
const Forms = "auto, marks, tasks, function:NAME, calls:FROM,TO"

// Tasks is the text of TaskMarks.
const Tasks = "tasks"

// Parse reads the text of a region; false: it is in none of the Forms.
func Parse(text string) (Spec, bool) {
	kind, names, _ := strings.Cut(text, ":")
	switch {
	case text == "auto":
		return Spec{Kind: Auto}, true
	case text == "marks":
		return Spec{Kind: Marks}, true
	case text == Tasks:
		return Spec{Kind: TaskMarks}, true
	case kind == "function" && names != "":
		return Spec{Kind: Function, From: names}, true
	case kind == "calls":
		from, to, ok := strings.Cut(names, ",")
		return Spec{Kind: Calls, From: from, To: to}, ok && from != "" && to != ""
	}
	return Spec{}, false
}

// String is the text of a region.
func (s Spec) String() string {
	switch s.Kind {
	case Marks:
		return "marks"
	case TaskMarks:
		return Tasks
	case Function:
		return "function:" + s.From
	case Calls:
		return fmt.Sprintf("calls:%s,%s", s.From, s.To)
	}
	return "auto"
}
