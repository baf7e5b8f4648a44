package dmt

import (
	"fmt"

	"github.com/heddle-dmt/heddle/sched"
)

// The controllers, as Control.Policy takes them.
const (
	// FCFS is FirstCome.
	FCFS = "fcfs"
)

// Control chooses the controller of synchronization operations. The zero value chooses none:
// threads continue without being held.
type Control struct {
	// Policy is empty or the name of a controller.
	Policy string `json:"policy,omitempty" yaml:"policy" mapstructure:"policy"`
	// Schedules adds the places that schedules need: calls of malloc and its kin, and
	// returns of the routines that threads were made for.
	Schedules bool `json:"schedules,omitempty" yaml:"schedules" mapstructure:"schedules"`
}

// ControlPolicies lists the values of Control.Policy.
func ControlPolicies() []string { return []string{"", FCFS} }

// Validate returns the first invalid option as a *FieldError.
func (c Control) Validate() error {
	if err := sched.CheckOneOf("control.policy", c.Policy, ControlPolicies()); err != nil {
		return err
	}
	return nil
}

// NewController makes the controller of valid options; nil without one.
func NewController(c Control) sched.Controller {
	switch c.Policy {
	case "":
		return nil
	case FCFS:
		f := NewFirstCome()
		f.schedules = c.Schedules
		return f
	}
	panic(fmt.Sprintf("bug: no controller %q", c.Policy))
}
