// Package publish connects programs on the host to TCP servers in the guest: it listens on
// ports of the host, and carries bytes between the connections of the host and their ends in
// the guest.
//
// It knows no guest: Guest and End are what it needs of one. A Link is one connection, a state
// machine without system calls of its own. A Host has the ports and the links, and carries out
// the system calls. It has no goroutine: all happens in Poll, which never waits, and in Wait,
// which does nothing else.
//
// Invariants:
//
//  1. The guest learns of the host by Guest.Act alone: a run in which the same operations are
//     given to the guest at the same places is the same run.
//  2. The bytes of each direction keep their order, and a byte that the host has taken from the
//     guest is written to the client's connection.
//  3. A connection holds no bytes besides those in the guest: a side that does not read stops
//     the other.
package publish
