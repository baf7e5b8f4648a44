package sched

import "fmt"

// The controllers, as Control.Policy takes them.
const (
	// FCFS is FirstCome.
	FCFS = "fcfs"
)

// Control chooses who decides at synchronization operations. The zero value is
// nobody: threads go on as they come.
type Control struct {
	// Policy is empty or the name of a controller.
	Policy string `json:"policy,omitempty" yaml:"policy" mapstructure:"policy"`
	// Schedules adds the places that schedules need: calls of malloc and its kin, and
	// returns of the routines that threads were made for.
	Schedules bool `json:"schedules,omitempty" yaml:"schedules" mapstructure:"schedules"`
}

// ControlPolicies lists the values of Control.Policy.
func ControlPolicies() []string { return []string{"", FCFS} }

// Validate returns what is wrong as a *FieldError.
func (c Control) Validate() error {
	if err := oneOf("control.policy", c.Policy, ControlPolicies()); err != nil {
		return err
	}
	return nil
}

// NewController makes the controller of valid options; nil if there is none.
func NewController(c Control) Controller {
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
