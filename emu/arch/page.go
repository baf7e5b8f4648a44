package arch

// PageSize is the size of a page of guest memory in bytes.
const PageSize = 1 << 12

// UserEnd is the end of the user addresses: 47 bits, as in Linux.
const UserEnd = 1 << 47

// Perm is the rights of a mapped page, a set of Read, Write and Exec.
type Perm uint8

// Rights of a page.
const (
	Read Perm = 1 << iota
	Write
	Exec
)

// Access is a kind of memory access.
type Access uint8

// Kinds of access.
const (
	AccessRead Access = iota
	AccessWrite
	AccessFetch
)

// FaultKind is the reason why an address could not be accessed.
type FaultKind uint8

// Kinds of fault. The owner of the address space resolves Absent and Denied: the page may be
// supplied on demand.
const (
	NoFault FaultKind = iota
	// Absent: the address has no page, or is not a user address.
	Absent
	// Denied: the page lacks the right.
	Denied
	// NoMemory: the page had to be copied, and no page was left.
	NoMemory
)
