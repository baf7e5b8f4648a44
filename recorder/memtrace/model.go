package memtrace

// The head of an item: which form follows, what is given, and how many predicted records precede it.
const (
	headWhich    = 3
	headFirst    = 0      // the form that came after the last one the last time
	headSecond   = 1      // the form that came before that one
	headNumber   = 2      // a number follows, a new one with the definition
	headItem     = 3      // no record: a byte with the kind follows
	headBranches = 1 << 2 // the number of branches is given
	patternShift = 3
	runShift     = 6
	runMost      = 3 // a number follows, which is added
)

// Which words are given, and how: one of the form's patterns is 0 to patterns-1.
const (
	patterns    = 6
	patternMask = 7
	patternNone = 6 // no words are given
	patternNew  = 7 // the pattern follows
)

// Items that are no records.
const (
	itemEnd     = iota // of the block
	itemPiece          // a new piece: its stamp
	itemMap            // the pages of addresses
	itemKernel         // a KernelStore with data
	itemLater          // ... without
	itemContent        // of a page
	itemZero
	itemCopy
	itemView
	itemRead // a KernelLoad
	itemPart // the next access is one of several of its instruction
)

// How a word is given; lower numbers are the bytes of its difference to the last one.
const (
	missMost  = 8
	missOther = 9
	missNone  = 15
)

// An access's description: its size and flags.
const (
	sizeMask   = 31
	flagStore  = 32
	flagAtomic = 64
)

const (
	mostWords = 64 // of a form
	cacheSize = 1 << 16
	lastsSize = 256
	pageShift = 12
	addrBits  = 48
)

// word is one of a form's words: the value of an access, or an address.
type word struct {
	last, difference, mask uint64
	at                     uint64 // what is added to the address
	address                uint8  // the number of the word that has the address, from 1; 0: none
	size                   uint8  // bytes; 0: it is not used
	value                  bool
}

// access is one of a form's accesses.
type access struct {
	pc, at, constant uint64
	branches         uint64 // before it
	address, value   uint8  // the numbers of words, from 1; 0: none
	descr            uint8
}

// pattern is which words are given, as bits, and how, four bits for each.
type pattern struct {
	words uint64
	codes []byte
}

// form is accesses that were executed one after the other, and the last record's words.
type form struct {
	accesses []access
	words    []word
	next     [2]*form // that came after it, the last first
	branches [2]uint64
	patterns [patterns]pattern
	replaced int // the pattern that the next new one replaces
}

// noteSuccessor notes that a form came after this one, with this number of branches between.
func (f *form) noteSuccessor(to *form, branches uint64) {
	if f.next[0] != to {
		f.next[1], f.branches[1] = f.next[0], f.branches[0]
		f.next[0] = to
	}
	f.branches[0] = branches
}

func slotOf(addr uint64) uint64 { return (addr>>2 ^ addr<<14 ^ addr>>20) & (cacheSize - 1) }

// maskOf has the bits of a number of size bytes.
func maskOf(size uint8) uint64 {
	if size >= 8 {
		return ^uint64(0)
	}
	return 1<<(8*size) - 1
}

func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }
