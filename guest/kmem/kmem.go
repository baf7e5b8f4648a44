// Package kmem counts the memory that the guest kernel's own objects take on
// the host: threads, open files, what lies in pipes and sockets. It is no part
// of the guest's memory, but a guest can make as much of it as it likes, so it
// has a limit of its own. What is counted are sizes that are fixed in the code,
// never what the host's allocator says; a run stays a pure function of its
// inputs.
//
// Invariant: what was charged for an object is released once, when the object
// ends.
package kmem

// Sizes of objects in bytes, about what each takes on the host.
const (
	Thread     = 16 << 10 // with the engine's context
	Process    = 16 << 10 // without threads and address space
	Mapping    = 256      // of a process that is forked
	File       = 1 << 10  // an open description
	Descriptor = 32       // an entry of a table
	Watch      = 1 << 10  // an entry of an epoll instance
	Timer      = 512
	Object     = 1 << 10 // of System V IPC, or a POSIX message queue
	Terminal   = 64 << 10
	Filter     = 512 // of system calls, without its instructions
)

// least is the limit of machines with little memory.
const least = 32 << 20

// Account is the kernel memory of one machine.
type Account struct {
	used, limit uint64
	refused     bool
}

// New makes the account of a machine whose guest may have so many bytes: an
// eighth of it, and not too little.
func New(guest uint64) *Account { return &Account{limit: max(least, guest/8)} }

// Charge takes n bytes; false: they would be too many, and none is taken. A nil
// account counts nothing.
func (a *Account) Charge(n uint64) bool {
	if a == nil {
		return true
	}
	if n > a.limit || a.used > a.limit-n {
		a.refused = true
		return false
	}
	a.used += n
	return true
}

// TakeRefused reports whether something was refused since the last call.
func (a *Account) TakeRefused() bool {
	if a == nil {
		return false
	}
	was := a.refused
	a.refused = false
	return was
}

// Force takes n bytes even if they are too many, for what cannot fail; the next
// Charge will.
func (a *Account) Force(n uint64) {
	if a != nil {
		a.used += n
	}
}

// Release gives n bytes back.
func (a *Account) Release(n uint64) {
	if a == nil {
		return
	}
	if n > a.used {
		panic("bug: more kernel memory is released than was charged")
	}
	a.used -= n
}

// MayGrow is for what is counted by Force: false, and noted as a refusal, once the limit
// is reached.
func (a *Account) MayGrow() bool {
	if a == nil || a.used < a.limit {
		return true
	}
	a.refused = true
	return false
}

// Used is the number of bytes that are charged.
func (a *Account) Used() uint64 {
	if a == nil {
		return 0
	}
	return a.used
}
