package trace

import "github.com/heddle-dmt/heddle/recorder/event"

// kinds makes an event of each kind whose records are events.
var kinds = map[Kind]func() any{
	Sideband:  func() any { return &event.Switch{} },
	Threads:   func() any { return &event.Start{} },
	Exits:     func() any { return &event.Exit{} },
	Syscalls:  func() any { return &event.Syscall{} },
	Signals:   func() any { return &event.Signal{} },
	Sync:      func() any { return &event.Sync{} },
	Objects:   func() any { return &event.Object{} },
	Inputs:    func() any { return &event.Input{} },
	Decisions: func() any { return &event.Decision{} },
	Mappings:  func() any { return &event.Mapping{} },
	Heap:      func() any { return &event.Heap{} },
	Delays:    func() any { return &event.Delay{} },
	Faults:    func() any { return &event.StreamFault{} },
	Clients:   func() any { return &event.Client{} },
	Code:      func() any { return &event.Code{} },
	Registers: func() any { return &event.Registers{} },
	Areas:     func() any { return &event.Area{} },
	Files:     func() any { return &event.File{} },
}
