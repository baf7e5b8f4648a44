// Package kmem counts the memory that the guest kernel's own objects take on
// the host: threads, open files, data in pipes and sockets. It is no part
// of the guest's memory, but a guest can make as much of it as it likes, so it
// has a limit of its own. The sizes are constants of the code,
// never those of the host's allocator; a run stays a pure function of its
// inputs.
//
// Invariant: the charge of an object is released once, when the object
// ends.
package kmem

// Sizes of objects in bytes, approximately as on the host.
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

// New makes the account of a machine with the given guest memory in bytes. Its limit
// is an eighth of that memory, and at least 32 MiB.
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

// Force takes n bytes even above the limit, for operations that cannot fail; the
// next Charge fails.
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

// MayGrow reports whether the limit allows objects that Force charges. If not, a
// refusal is recorded.
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
