package arch

// PageSize is the size of a page of guest memory in bytes.
const PageSize = 1 << 12

// UserEnd is the first address that is no user address: 47 bits, as in Linux.
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

// FaultKind says why an address could not be accessed.
type FaultKind uint8

// Kinds of fault. Absent and Denied are for the owner of the address space to resolve:
// a page may be there on demand.
const (
	NoFault FaultKind = iota
	// Absent is an address without a page, or one that is no user address.
	Absent
	// Denied is a page without the right.
	Denied
	// NoMemory is a page that had to be copied when there was no page left.
	NoMemory
)
