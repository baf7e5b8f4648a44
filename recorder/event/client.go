package event

import "github.com/heddle-dmt/heddle/emu/arch"

// ClientOp is what a client outside of the guest does.
type ClientOp uint8

// Operations of clients.
const (
	ClientConnects ClientOp = iota // to a published port
	ClientSends                    // bytes, which the guest can read from now on
	ClientEnds                     // its half of the connection: it has sent all
	ClientResets                   // the connection, or has lost it
	ClientTakes                    // bytes that the guest has sent, which gives the guest room for as many
)

var clientNames = [...]string{"connects", "sends", "ends", "resets", "takes"}

// ClientOps lists the operations' names, in the order of their numbers.
func ClientOps() []string { return clientNames[:] }

func (o ClientOp) String() string {
	if int(o) < len(clientNames) {
		return clientNames[o]
	}
	return "unknown"
}

// Client is an operation of a client outside of the guest on its connection to a published
// port. It is an input of the run, and takes place between two decisions of the scheduler.
type Client struct {
	Stamp
	// Decisions is how many decisions of the run come before it.
	Decisions uint64 `json:"decisions"`
	// At is the virtual time at which it takes place.
	At arch.Cycles `json:"at"`
	Op ClientOp    `json:"op"`
	// Connection numbers the connections of the run from 1, and Port is the guest's port.
	Connection uint64 `json:"connection"`
	Port       uint16 `json:"port"`
	// Size is the number of bytes that are sent or taken; Data has them if they are sent.
	Size uint64 `json:"size"`
	Data []byte `json:"data"`
}
