package syncops

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Custom is an operation that a configuration file adds: a function of the
// program that orders threads.
type Custom struct {
	// Name is the function's symbol. Where Address is given it only serves as
	// the operation's name.
	Name string `json:"name,omitempty" yaml:"name" mapstructure:"name"`
	// File restricts the operation to files of this name (the last component of
	// the path, or all of it); empty: any file.
	File string `json:"file,omitempty" yaml:"file" mapstructure:"file"`
	// Address is where the function is in File, as objdump prints it, for files
	// without symbols.
	Address Address `json:"address,omitempty" yaml:"address" mapstructure:"address"`
	// Object says which argument, from 1 to 3, is the address of the object; 0:
	// there is one object for all calls.
	Object int `json:"object,omitempty" yaml:"object" mapstructure:"object"`
	// Effect is the call's effect on the object.
	Effect Effect `json:"effect,omitempty" yaml:"effect" mapstructure:"effect"`
	// At says when: at the entry or at the return. The default is the entry for
	// release, the return for acquire, and for both release at the entry and
	// acquire at the return.
	At When `json:"at,omitempty" yaml:"at" mapstructure:"at"`
	// Success says which results mean that the effect at the return took place;
	// the default is any.
	Success Outcome `json:"success,omitempty" yaml:"success" mapstructure:"success"`
	// Hint makes the function one of PARROT's hints, in place of an operation with an effect. A soft
	// barrier (soba_wait) is for Count threads, and opens after Turns turns; 0: a default.
	Hint  Hint `json:"hint,omitempty" yaml:"hint" mapstructure:"hint"`
	Count int  `json:"count,omitempty" yaml:"count" mapstructure:"count"`
	Turns int  `json:"turns,omitempty" yaml:"turns" mapstructure:"turns"`
}

// Address is an address in a file, without the bias of its mapping; 0: none.
type Address uint64

// UnmarshalText takes a number, hexadecimal with 0x before it.
func (a *Address) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 0, 64)
	if err != nil || n == 0 {
		return errors.New("a number such as 0x1234")
	}
	*a = Address(n)
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (a Address) MarshalText() ([]byte, error) {
	return []byte("0x" + strconv.FormatUint(uint64(a), 16)), nil
}

// Effect is the effect of a custom operation on its object.
type Effect string

// NoEffect is that of an operation that orders nothing for the program
// (Recognizer.OrdersNothing). If it is an allocator's, it is reported to Sink.AddAllocation as
// well.
const NoEffect Effect = "none"

// When is when it does so.
type When string

// Outcome is a condition on a result.
type Outcome string

// UnmarshalText takes acquire, release or both.
func (e *Effect) UnmarshalText(b []byte) error { return parseOneOf(e, b, "acquire", "release", "both") }

// UnmarshalText takes entry or return.
func (w *When) UnmarshalText(b []byte) error { return parseOneOf(w, b, "entry", "return") }

// UnmarshalText takes any, zero, nonzero or nonnegative.
func (o *Outcome) UnmarshalText(b []byte) error {
	return parseOneOf(o, b, "any", "zero", "nonzero", "nonnegative")
}

func parseOneOf[T ~string](to *T, b []byte, allowed ...string) error {
	for _, a := range allowed {
		if string(b) == a {
			*to = T(a)
			return nil
		}
	}
	return errors.New(strings.Join(allowed, ", "))
}

// list is a file of custom operations.
type list struct {
	Operations []Custom `yaml:"operations" mapstructure:"operations"`
}

// maxArgument is the last argument that can be an object.
const maxArgument = 3

// LoadCustom reads a file of custom operations (docs/sync.md has the format).
func LoadCustom(name string) ([]Custom, error) {
	var l list
	f, err := yamlfile.Load(name, &l)
	if err != nil {
		return nil, err
	}
	for i := range l.Operations {
		if err := l.Operations[i].checkFields(f, fmt.Sprintf("operations[%d]", i)); err != nil {
			return nil, err
		}
	}
	return l.Operations, nil
}

// checkFields finds the mistakes that the types cannot exclude.
func (c *Custom) checkFields(f *yamlfile.File, field string) error {
	if name, found, allowed := c.Wrong(); name != "" {
		return f.Wrong(field+"."+name, found, allowed)
	}
	return nil
}

// Wrong is the first field that is not as it must be, by its name in YAML, with
// the value found there and the allowed values; no field if all are.
func (c *Custom) Wrong() (field string, found any, allowed string) {
	switch {
	case c.Name == "":
		return "name", "empty", "the name of a function"
	case c.Hint != "" && c.Effect != "":
		return "effect", c.Effect, "none for a hint"
	case c.Hint == softBarrier && (c.Count < 2 || c.Count > maxHint):
		return "count", c.Count, fmt.Sprintf("2 to %d, the threads of the soft barrier", maxHint)
	case c.Hint != softBarrier && c.Count != 0:
		return "count", c.Count, "a count for hint: soba_wait only"
	case c.Turns < 0 || c.Turns > maxHint || c.Hint != softBarrier && c.Turns != 0:
		return "turns", c.Turns, fmt.Sprintf("0 to %d, for hint: soba_wait only", maxHint)
	case c.Effect == "" && c.Hint == "":
		return "effect", "missing", "acquire, release, both"
	case c.Object < 0 || c.Object > maxArgument:
		return "object", c.Object, fmt.Sprintf("0 to %d", maxArgument)
	case c.Address != 0 && c.File == "":
		return "file", "missing", "the file that the address is in"
	}
	return "", nil, ""
}

// asFunction is how the operation is recognised.
func (c *Custom) asFunction() *function {
	f := &function{name: c.Name, role: theFunction, success: always}
	if c.Object > 0 {
		f.role, f.object = inMemory, int8(c.Object)
	}
	switch c.Success {
	case "zero":
		f.success = ifZero
	case "nonzero":
		f.success = ifNonzero
	case "nonnegative":
		f.success = ifNonnegative
	}
	effects := event.Effects(0)
	if c.Hint != "" {
		f.op, f.hint = c.Hint.operation(), &hint{count: c.Count, turns: c.Turns}
		return f
	}
	switch c.Effect {
	case "acquire":
		f.op, effects, f.done = event.OpCustomAcquire, event.Acquire, event.Acquire
	case "release":
		f.op, effects, f.enter = event.OpCustomRelease, event.Release, event.Release
	case NoEffect:
		f.op = event.OpCustom
		if s, ok := shapes[c.Name]; ok {
			f.heap = &s
		}
	default:
		f.op, effects = event.OpCustom, event.Acquire|event.Release
		f.enter, f.done = event.Release, event.Acquire
	}
	switch c.At {
	case "entry":
		f.enter, f.done = effects, 0
	case "return":
		f.enter, f.done = 0, effects
	}
	return f
}

// matchesFile reports whether a file is the one that an operation is restricted to.
func matchesFile(want, name string) bool {
	return want == "" || want == name || want == path.Base(name)
}

// fixed is the set of operations that are recognised in all files. Only its cache of results
// changes, so snapshots share it.
type fixed struct {
	custom      []Custom
	customNames map[string][]*Custom
	effectless  []event.ObjectID // of the custom operations without effect
	byName      map[string]*function
	heap        map[string]*function // allocators, if they are recognised

	spinInit, spinUnlock, routine, destructor *function
	body                                      *function // of a thread, or nil
}

// BoundInSnapshot marks that copies of the machine's state share it, but for those
// of another machine.
func (*fixed) BoundInSnapshot() {}

func newFixed(config *Config) *fixed {
	x := &fixed{
		custom: config.Custom, customNames: map[string][]*Custom{}, byName: map[string]*function{},
		routine:    &function{name: "once routine", kind: routine},
		destructor: &function{name: "destructor", kind: destructor, op: event.OpKeyDestructor, success: always},
	}
	for i := range x.custom {
		c := &x.custom[i]
		if c.Address == 0 {
			x.customNames[c.Name] = append(x.customNames[c.Name], c)
		}
		if c.Effect == NoEffect {
			x.effectless = append(x.effectless, identify(functionObject(c.Name)))
		}
	}
	if config.Heap {
		x.heap = allocators()
	}
	if config.Schedules {
		x.heap = orderedAllocators()
		x.body = &function{name: "thread routine", kind: body}
	}
	x.spinInit, x.spinUnlock = x.functionOf("pthread_spin_init", ""), x.functionOf("pthread_spin_unlock", "")
	return x
}

// functionOf finds the operation of a symbol of a file, nil: none. Custom
// operations come before known ones.
func (x *fixed) functionOf(symbol, file string) *function {
	for _, c := range x.customNames[symbol] {
		if matchesFile(c.File, file) {
			return c.asFunction()
		}
	}
	if f, ok := x.heap[symbol]; ok {
		return f
	}
	if f, ok := x.byName[symbol]; ok {
		return f
	}
	f, ok := lookUpSymbol(symbol)
	if !ok {
		return nil
	}
	x.byName[symbol] = &f
	return &f
}
