package sweep

import (
	"errors"
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
)

// Memory is the memory model of a point, and, unless it is sc, when stores become
// visible and how many a core's buffer holds.
type Memory struct {
	Model    string `json:"model"`
	Commit   string `json:"commit,omitempty"`
	Capacity int    `json:"capacity,omitempty"`
}

// gridMemories lists those of the grid.
func (x *Experiment) gridMemories() []Memory {
	o := x.Machine.Memory.WithDefaults()
	var all []Memory
	for _, model := range machineValue(x.Grid.Model, o.Model) {
		model = strings.ToLower(model)
		if model == memmodel.SC.String() {
			all = append(all, Memory{Model: model})
			continue
		}
		for _, commit := range machineValue(x.Grid.Commit, o.Commit) {
			for _, capacity := range machineValue(x.Grid.Capacity, o.Capacity) {
				all = append(all, Memory{model, commit, capacity})
			}
		}
	}
	return all
}

// configure configures a machine.
func (m Memory) configure(o *storebuffer.Options) {
	o.Model = m.Model
	if m.Commit != "" {
		o.Commit, o.Capacity = m.Commit, m.Capacity
	}
}

// String is the memory's part of a point's name: nothing under sc, and only the values that
// differ from the usual ones.
func (m Memory) String() string {
	if m.Model == memmodel.SC.String() {
		return ""
	}
	text := " model=" + m.Model
	usual := storebuffer.Options{}.WithDefaults()
	if m.Commit != usual.Commit {
		text += " commit=" + m.Commit
	}
	if m.Capacity != usual.Capacity {
		text += fmt.Sprintf(" capacity=%d", m.Capacity)
	}
	return text
}

// checkModels checks the grid's values one by one, as the machine would.
func (x *Experiment) checkModels() error {
	for i, model := range x.Grid.Model {
		if err := checkMemory("model", i, storebuffer.Options{Model: model}); err != nil {
			return err
		}
	}
	for i, commit := range x.Grid.Commit {
		if err := checkMemory("commit", i, storebuffer.Options{Commit: commit}); err != nil {
			return err
		}
	}
	for i, capacity := range x.Grid.Capacity {
		if capacity == 0 {
			capacity = -1 // 0 would be the usual one
		}
		if err := checkMemory("capacity", i, storebuffer.Options{Capacity: capacity}); err != nil {
			return fieldError(fmt.Sprintf("grid.capacity[%d]", i), x.Grid.Capacity[i], fmt.Sprintf("1 to %d", storebuffer.MaxCapacity))
		}
	}
	for _, m := range x.gridMemories() {
		o := x.Machine.Memory
		m.configure(&o)
		if err := o.Validate(); err != nil {
			return fieldError("grid.model", m.Model, err.Error())
		}
	}
	return nil
}

func checkMemory(name string, i int, o storebuffer.Options) error {
	var field *storebuffer.FieldError
	if err := o.Validate(); errors.As(err, &field) {
		return fieldError(fmt.Sprintf("grid.%s[%d]", name, i), form(field.Found), field.Allowed)
	}
	return nil
}
