package direct

import (
	"errors"

	"github.com/heddle-dmt/heddle/emu"
)

// errUnsupported is the answer to requests that this engine lacks.
var errUnsupported = errors.New("the engine direct lacks this; use --engine unicorn")

// LogAccesses implements emu.CPU.
func (c *CPU) LogAccesses() (emu.AccessLog, error) { return nil, errUnsupported }
