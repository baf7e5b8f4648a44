package arch

import "fmt"

// Costs is the timing model: costs in cycles of the core that executes. The cost of an instruction
// is the sum of the fields that apply to it. CostFields has the source of each default.
type Costs struct {
	// Instruction is the cost of any instruction.
	Instruction uint32 `json:"instruction" yaml:"instruction" mapstructure:"instruction"`
	// Memory is added for each instruction that accesses memory.
	Memory uint32 `json:"memory" yaml:"memory" mapstructure:"memory"`
	// Divide is added for integer and floating-point division.
	Divide uint32 `json:"divide" yaml:"divide" mapstructure:"divide"`
	// Sqrt is added for square roots.
	Sqrt uint32 `json:"sqrt" yaml:"sqrt" mapstructure:"sqrt"`
	// Transcendental is added for x87 sines, logarithms and the like.
	Transcendental uint32 `json:"transcendental" yaml:"transcendental" mapstructure:"transcendental"`
	// Atomic is added for LOCK-prefixed instructions and XCHG with memory.
	Atomic uint32 `json:"atomic" yaml:"atomic" mapstructure:"atomic"`
	// Fence is added for MFENCE, SFENCE and LFENCE.
	Fence uint32 `json:"fence" yaml:"fence" mapstructure:"fence"`
	// Syscall is the cost of entering and leaving the kernel.
	Syscall uint32 `json:"syscall" yaml:"syscall" mapstructure:"syscall"`
	// PageFault is the cost of a page that is created at its first use.
	PageFault uint32 `json:"page_fault" yaml:"page_fault" mapstructure:"page_fault"`
	// ContextSwitch is the cost of a core's change to another thread.
	ContextSwitch uint32 `json:"context_switch" yaml:"context_switch" mapstructure:"context_switch"`

	// Sync is the cost of the wrapper of a synchronization operation, each time that a schedule or
	// a policy orders one.
	Sync uint32 `json:"sync" yaml:"sync" mapstructure:"sync"`
	// SemaphoreWait is the cost of a semaphore's down() and the matching up() if no thread has to
	// wait.
	SemaphoreWait uint32 `json:"semaphore_wait" yaml:"semaphore_wait" mapstructure:"semaphore_wait"`
	// SemaphoreWake is the time from the up() of a semaphore until a thread that waited for it
	// continues.
	SemaphoreWake uint32 `json:"semaphore_wake" yaml:"semaphore_wake" mapstructure:"semaphore_wake"`
	// SpinCheck is the time from the store to a flag until a thread that spins on it continues
	// (flag relay).
	SpinCheck uint32 `json:"spin_check" yaml:"spin_check" mapstructure:"spin_check"`
	// BranchCount is added for each branch while a thread's branches are counted (PEREGRINE,
	// section 3.2).
	BranchCount uint32 `json:"branch_count" yaml:"branch_count" mapstructure:"branch_count"`
	// SlotCheck is added for each call and each return: the check whether the thread's
	// instrumentation is on (PEREGRINE, section 3.2).
	SlotCheck uint32 `json:"slot_check" yaml:"slot_check" mapstructure:"slot_check"`
	// SlotCall is the cost of a call of slot() by a thread's instrumentation (PEREGRINE, figure 8): at the
	// instructions of constraints or, where arrivals there are not counted, at each instruction.
	SlotCall uint32 `json:"slot_call" yaml:"slot_call" mapstructure:"slot_call"`
	// PTByte is the cost of a byte of branch trace in estimates of the cost of recording. The
	// virtual time of a recorded run does not contain it.
	PTByte uint32 `json:"pt_byte" yaml:"pt_byte" mapstructure:"pt_byte"`
	// PathIncrement and PathWrite are the costs of an increment of the register of paths that are
	// recorded in software, and of writing it (Ball and Larus, Efficient path profiling). Like
	// PTByte, they appear only in estimates.
	PathIncrement uint32 `json:"path_increment" yaml:"path_increment" mapstructure:"path_increment"`
	PathWrite     uint32 `json:"path_write" yaml:"path_write" mapstructure:"path_write"`

	// MHz is the number of cycles in a microsecond of virtual time.
	MHz uint32 `json:"mhz" yaml:"mhz" mapstructure:"mhz"`
}

// CostField describes one of the Costs.
type CostField struct {
	// Name is the field's name in YAML and JSON.
	Name string
	// What describes the event that has the cost, and Source is the source of the default.
	What, Source string
	// Default is the value in DefaultCosts; Least and Most bound it.
	Default, Least, Most uint32
	of                   func(*Costs) *uint32
}

// In returns the field's value in c.
func (f *CostField) In(c Costs) uint32 { return *f.of(&c) }

// Set changes the field's value in c.
func (f *CostField) Set(c *Costs, value uint32) { *f.of(c) = value }

// Unit returns the unit of the field's value.
func (f *CostField) Unit() string {
	if f.Name == "mhz" {
		return "MHz"
	}
	return "cycles"
}

// maxCost bounds each cost: half a second at 2 GHz, so that sums stay far from overflow.
const maxCost = 1_000_000_000

const (
	agner   = "Agner Fog's instruction tables, "
	lmbench = "lmbench (McVoy and Staelin, USENIX 1996) on processors of the 2010s, "
)

var costFields = []CostField{
	{
		"instruction", "any instruction",
		"one simple instruction a cycle: the latency of most in Agner Fog's tables.",
		1, 1, maxCost, func(c *Costs) *uint32 { return &c.Instruction },
	},
	{
		"memory", "more for an instruction that accesses memory",
		"the issue slot that a load or store that hits the first-level cache takes; caches are not modelled.",
		1, 0, maxCost, func(c *Costs) *uint32 { return &c.Memory },
	},
	{
		"divide", "more for a division",
		agner + "DIV and DIVSD of Nehalem to Skylake: 13 to 26 cycles, the middle.",
		20, 0, maxCost, func(c *Costs) *uint32 { return &c.Divide },
	},
	{
		"sqrt", "more for a square root",
		agner + "SQRTSD of Nehalem to Skylake: 13 to 21 cycles, the middle.",
		15, 0, maxCost, func(c *Costs) *uint32 { return &c.Sqrt },
	},
	{
		"transcendental", "more for an x87 sine, logarithm or similar function",
		agner + "FSIN to FYL2X: 50 to 120 cycles, the middle.",
		80, 0, maxCost, func(c *Costs) *uint32 { return &c.Transcendental },
	},
	{
		"atomic", "more for a locked instruction, or XCHG with memory",
		agner + "LOCK XADD of Nehalem to Skylake: 18 to 22 cycles when the line is in the core's cache.",
		18, 0, maxCost, func(c *Costs) *uint32 { return &c.Atomic },
	},
	{
		"fence", "more for MFENCE, SFENCE or LFENCE",
		agner + "MFENCE: 33 cycles.",
		30, 0, maxCost, func(c *Costs) *uint32 { return &c.Fence },
	},
	{
		"syscall", "entering and leaving the kernel",
		lmbench + "the null call: about 0.15 microseconds.",
		300, 0, maxCost, func(c *Costs) *uint32 { return &c.Syscall },
	},
	{
		"page_fault", "a page that is created at its first use",
		lmbench + "the page fault: about 0.5 microseconds.",
		1000, 0, maxCost, func(c *Costs) *uint32 { return &c.PageFault },
	},
	{
		"context_switch", "a core's change to another thread",
		lmbench + "two processes of size 0: about 1 microsecond.",
		2000, 0, maxCost, func(c *Costs) *uint32 { return &c.ContextSwitch },
	},
	{
		"sync", "the wrapper of a synchronization operation that is ordered",
		"a call, reading the thread's position and the schedule's next entry, an entry in the log: some 30 instructions with 10 accesses by the costs above.",
		40, 0, maxCost, func(c *Costs) *uint32 { return &c.Sync },
	},
	{
		"semaphore_wait", "down() and up() of a semaphore for which no thread has to wait",
		"two locked instructions in two calls of the C library.",
		50, 0, maxCost, func(c *Costs) *uint32 { return &c.SemaphoreWait },
	},
	{
		"semaphore_wake", "from up() until the thread that waited continues",
		"a FUTEX_WAKE (a null call and the scheduler's wake-up) and a context switch by the costs above, on another core that slept: about 2 microseconds.",
		4000, 0, maxCost, func(c *Costs) *uint32 { return &c.SemaphoreWake },
	},
	{
		"spin_check", "from the store to a flag until the thread that spins on it continues",
		"David, Guerraoui and Trigonakis, Everything you always wanted to know about synchronization (SOSP 2013): a line changes cores of a socket in about 100 cycles.",
		100, 0, maxCost, func(c *Costs) *uint32 { return &c.SpinCheck },
	},
	{
		"branch_count", "more for a branch while the thread's branches are counted",
		"an increment in thread-local memory by the costs above: one instruction with an access.",
		2, 0, maxCost, func(c *Costs) *uint32 { return &c.BranchCount },
	},
	{
		"slot_check", "more for a call and for a return: is the thread's instrumentation on?",
		"a comparison in thread-local memory and a branch that is predicted, by the costs above; PEREGRINE, section 3.2, calls it small.",
		3, 0, maxCost, func(c *Costs) *uint32 { return &c.SlotCheck },
	},
	{
		"slot_call", "a call of slot() by the thread's instrumentation",
		"call, look-up of the instruction's actions, return, by the costs above: figure 8 of PEREGRINE without actions is some 6 instructions with 4 accesses.",
		10, 0, maxCost, func(c *Costs) *uint32 { return &c.SlotCall },
	},
	{
		"pt_byte", "a byte of branch trace, in estimates of the cost of recording",
		"H3, table 1: 0.24 s more for 553 MB on average, which is 0.43 ns a byte.",
		1, 0, maxCost, func(c *Costs) *uint32 { return &c.PTByte },
	},
	{
		"path_increment", "setting or increasing the register of a path that is recorded in software, in estimates of the cost of recording",
		"one instruction on a register by the costs above (Ball and Larus, Efficient path profiling, MICRO 1996, section 3.3).",
		1, 0, maxCost, func(c *Costs) *uint32 { return &c.PathIncrement },
	},
	{
		"path_write", "writing that register at the end of a path, in the same estimates",
		"the end of the thread's buffer, the store, the new end, a comparison and a branch that is predicted: 6 instructions with 4 accesses by the costs above.",
		10, 0, maxCost, func(c *Costs) *uint32 { return &c.PathWrite },
	},
	{
		"mhz", "cycles in a microsecond of virtual time",
		"a processor of 2 GHz, of the order of the papers' machines.",
		2000, 1, 100_000, func(c *Costs) *uint32 { return &c.MHz },
	},
}

// CostFields returns all fields of Costs in their order. The caller may not change the slice.
func CostFields() []CostField { return costFields }

// DefaultCosts is a simple out-of-order core of 2 GHz: round figures near those of the sources in
// CostFields.
func DefaultCosts() Costs {
	var c Costs
	for i := range costFields {
		f := &costFields[i]
		f.Set(&c, f.Default)
	}
	return c
}

// CostError reports a cost that is out of range.
type CostError struct {
	// Field is the name in YAML and JSON.
	Field string
	Found uint32
	// Allowed describes the allowed values.
	Allowed string
}

func (e *CostError) Error() string {
	return fmt.Sprintf("cost %s is %d; allowed: %s", e.Field, e.Found, e.Allowed)
}

// Validate returns a *CostError for the first field that is out of range.
func (c Costs) Validate() error {
	for i := range costFields {
		f := &costFields[i]
		if v := f.In(c); v < f.Least || v > f.Most {
			return &CostError{f.Name, v, fmt.Sprintf("%d to %d", f.Least, f.Most)}
		}
	}
	return nil
}
