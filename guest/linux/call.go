package linux

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxArguments is how many arguments a system call can have (syscall(2)).
const MaxArguments = 6

// Call describes one system call.
type Call struct {
	Number uint64
	Name   string // as in asm/unistd_64.h, without __NR_
	Args   []Argument
	Traits Traits
}

// Kind is the type of an argument, which determines how it is printed.
type Kind byte

// Kinds of arguments.
const (
	Word       Kind = 'w' // none of the others, or not classified
	Descriptor Kind = 'f'
	String     Kind = 's' // the address of a string that ends with a zero byte
	Bytes      Kind = 'b' // the address of bytes that the kernel reads; the next argument is their number
	Number     Kind = 'd' // a signed number
	Octal      Kind = 'o' // a file mode
	Mask       Kind = 'x' // flags
	Pointer    Kind = 'p' // another address
)

// Output is the data that the kernel writes at an address argument.
type Output byte

// Kinds of output.
const (
	NoOutput      Output = iota
	OutputFixed          // Argument.Size bytes
	OutputLeft           // Argument.Size bytes, if a signal ended the wait: the time that was left
	OutputResult         // as many bytes as the result says
	OutputMessage        // struct msgbuf: a long, then as many bytes as the result says (msgrcv(2))
	OutputVector         // an array of struct iovec, whose number is the next argument; the result counts the bytes
	OutputHeader         // struct msghdr: its vector (recvmsg(2))
	OutputHeaders        // an array of struct mmsghdr, as many as the result says (recvmmsg(2))
)

// Argument describes an argument of a system call.
type Argument struct {
	Kind   Kind
	Output Output
	Size   int // in bytes, of OutputFixed and OutputLeft
	// IsOffset marks where in the file of the call's descriptor the call begins.
	IsOffset bool
}

// Traits are facts about a system call, a bit each.
type Traits uint32

// Traits of system calls.
const (
	// Blocks: the call may wait for another thread, for a process or for the outside.
	Blocks Traits = 1 << iota
	// ThreadLocal: the call has no effect that another thread can observe. Its result depends on no
	// other thread, or is TimeDependent. (madvise is one: the pages that it drops are the caller's own.)
	ThreadLocal
	// TimeDependent: the result depends on when, or on which core, the call is made.
	TimeDependent
	// Unordered: how often a thread makes the call has no effect on others. A wait for a futex
	// waits for memory to change, and it is the change that has an order.
	Unordered
	// AddressSpace: the call acts on the address space of its process.
	AddressSpace
	// KernelState marks a call with AddressSpace that acts on the rest of the kernel's state too. Calls
	// with neither AddressSpace nor ThreadLocal act on that alone.
	KernelState
	// Allocates: allocators get memory by it, give it back or protect it. How often they do depends
	// on the sizes of inputs.
	Allocates
	// OfLibrary: C libraries make the call of their own accord, and allocators do if it Allocates.
	OfLibrary
	// RemovesPages: after the call a page may be gone, another may be at its address, or another process
	// may see it. Processors notify each other of that by interrupts, which drain store buffers.
	RemovesPages
	// Forks: the call makes a thread or a process.
	Forks
	// Sleeps: the call waits for a time to pass and for nothing else.
	Sleeps
	// EndsThread: the call ends the thread that makes it.
	EndsThread
	// Executes: the call replaces the program of its process.
	Executes
	// MovesData: the call only moves data by the descriptor that is its first argument, or asks how
	// much there is.
	MovesData
	// MapsFile: memory at the address that is the result may have the content of a file.
	MapsFile
	// BringsInput: the call brings data from outside of the memory of the program.
	BringsInput
	// Polls: the call waits until a descriptor is ready; its result is 0 if its time is up.
	Polls
)

var (
	byNumber = indexByNumber()
	byName   = indexByName()
)

// Calls lists all system calls, by number.
func Calls() []Call { return table }

// Lookup finds a system call by its number; nil: Linux has none.
func Lookup(number uint64) *Call {
	if number < uint64(len(byNumber)) {
		return byNumber[number]
	}
	return nil
}

// LookupName finds a system call by its name; nil: Linux has none.
func LookupName(name string) *Call { return byName[name] }

// Name is the name of a system call, or empty if Linux has none with this number.
func Name(number uint64) string {
	if c := Lookup(number); c != nil {
		return c.Name
	}
	return ""
}

// NameOrNumber is the name of a system call, or a name made of its number.
func NameOrNumber(number uint64) string {
	if c := Lookup(number); c != nil {
		return c.Name
	}
	return "system call " + strconv.FormatUint(number, 10)
}

// Arity is the number of arguments of a system call, MaxArguments if it is not known.
func Arity(number uint64) int {
	if c := Lookup(number); c != nil {
		return len(c.Args)
	}
	return MaxArguments
}

// Has reports whether a system call has any of some traits.
func Has(number uint64, any Traits) bool {
	c := Lookup(number)
	return c != nil && c.Traits&any != 0
}

// Descriptor is the index of the first argument that is a descriptor, or -1.
func (c *Call) Descriptor() int {
	for i := range c.Args {
		if c.Args[i].Kind == Descriptor {
			return i
		}
	}
	return -1
}

// Output is the index of the first argument where the kernel writes, or -1.
func (c *Call) Output() int {
	for i := range c.Args {
		if c.Args[i].Output != NoOutput {
			return i
		}
	}
	return -1
}

// Offset is the index of the argument with the file offset of the call, or -1.
func (c *Call) Offset() int {
	for i := range c.Args {
		if c.Args[i].IsOffset {
			return i
		}
	}
	return -1
}

func indexByNumber() []*Call {
	list := make([]*Call, table[len(table)-1].Number+1)
	for i := range table {
		list[table[i].Number] = &table[i]
	}
	return list
}

func indexByName() map[string]*Call {
	index := make(map[string]*Call, len(table))
	for i := range table {
		index[table[i].Name] = &table[i]
	}
	return index
}

// outputs are the outputs without a size, as the table has them.
var outputs = map[string]Output{
	"result": OutputResult, "msgbuf": OutputMessage, "iovec": OutputVector, "msghdr": OutputHeader, "mmsghdr": OutputHeaders,
}

// parseArguments reads the arguments of a row of the table: a letter each, which is the kind, then
// "@" if it is an offset, ">" and an output or its size in bytes, or "~" and the size of a time that
// is left.
func parseArguments(text string) []Argument {
	args := []Argument{}
	for _, field := range strings.Fields(text) {
		a := Argument{Kind: Kind(field[0])}
		if rest := field[1:]; rest != "" {
			a.parseSuffix(rest)
		}
		args = append(args, a)
	}
	return args
}

func (a *Argument) parseSuffix(suffix string) {
	mark, what := suffix[0], suffix[1:]
	output, named := outputs[what]
	size, err := strconv.Atoi(what)
	switch {
	case mark == '@' && what == "":
		a.IsOffset = true
	case mark == '>' && named:
		a.Output = output
	case mark == '>' && err == nil:
		a.Output, a.Size = OutputFixed, size
	case mark == '~' && err == nil:
		a.Output, a.Size = OutputLeft, size
	default:
		panic(fmt.Sprintf("bug: the table of system calls has an argument with %q", suffix))
	}
}
