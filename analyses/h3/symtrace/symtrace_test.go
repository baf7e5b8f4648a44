package symtrace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/h3/search"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/zydis"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Where the program of these tests has its parts.
const (
	code, data, stack = 0x400000, 0x600000, 0x700000
	worker            = code + 0x100
	create, join      = code + 0x200, code + 0x210
	fail              = code + 0x220
	behindWorker      = code + 0x300 // in the C library
	behindCreate      = code + 5
	pageBytes         = 4096
)

// counting is a program whose two threads add 1 to a number without a lock; main fails
// if it then has a certain value.
const counting = `
	call create
	mov eax, [0x600000]
	add eax, 1
	mov [0x600000], eax
	mov rdi, [0x600010]
	xor esi, esi
	call join
	cmp dword ptr [0x600000], %d
	jne good
	mov edi, 0x600020
	call fail
good:
	ret
	.org 0x100
	push rdi
	mov eax, [0x600000]
	add eax, 1
	mov [0x600000], eax
	pop rdi
	ret
	.org 0x200
create:
	ret
	.org 0x210
join:
	ret
	.org 0x220
fail:
	ret
	.org 0x300
	nop
	ret
`

// program is the image of a program and the paths of its threads.
type program struct {
	image   *Image
	memory  map[uint64][]byte // by page
	profile *paths.Profile
}

// newProgram is the program where main is about to make the second thread.
func newProgram(t *testing.T, source string) *program {
	t.Helper()
	text := gcctest.Assemble(t, source)
	p := &program{memory: map[uint64][]byte{}, profile: &paths.Profile{}}
	for _, at := range []uint64{code, data, stack} {
		p.memory[at/pageBytes] = make([]byte, pageBytes)
	}
	copy(p.memory[code/pageBytes], text)
	copy(p.memory[data/pageBytes][0x20:], "it is wrong\x00")
	binary.LittleEndian.PutUint64(p.memory[stack/pageBytes][0x800:], behindCreate)
	p.image = &Image{
		Peek: p.peek, Functions: map[uint64]Function{
			create: {Name: "pthread_create", Role: Synchronize, Op: event.OpCreate},
			join:   {Name: "pthread_join", Role: Synchronize, Op: event.OpJoin},
			fail:   {Name: "__assert_fail", Role: Fail},
		},
		Mapped:    []Range{{code, code + pageBytes}, {data, data + pageBytes}, {stack, stack + pageBytes}},
		NewThread: NewThread{Block: Piece{0x500000, make([]byte, 128)}, Pointer: 0x500040},
	}
	for offset, value := range map[int]uint64{
		vex.OffsetRIP: create, offsetRSP: stack + 0x800, offsetRDI: data + 0x10, vex.OffsetRAX + 8*2: worker, vex.OffsetRAX + 8*1: 7,
	} {
		p.image.State.SetWord(offset, value)
	}
	return p
}

func (p *program) peek(addr uint64, b []byte) int {
	n := 0
	for n < len(b) && p.memory[addr/pageBytes] != nil {
		k := copy(b[n:], p.memory[addr/pageBytes][addr%pageBytes:])
		n, addr = n+k, addr+uint64(k)
	}
	return n
}

// thread adds the path of a thread: from an address, with the given return addresses, taking or not
// taking its conditional branches, to its end or that of fail.
func (p *program) thread(id arch.ThreadID, from uint64, returns []uint64, taken ...bool) {
	s := paths.Turn{Core: arch.CoreID(id), Blocks: nil}
	for at := from; at != 0; {
		text := make([]byte, 256)
		var lengths [64]byte
		run := zydis.Walk(text[:p.peek(at, text)], lengths[:])
		b := paths.Block{Addr: arch.Addr(at), Bytes: uint32(run.Bytes)}
		end := at
		for _, n := range lengths[:run.Count] {
			b.Instructions = append(b.Instructions, end)
			end += uint64(n)
		}
		s.Blocks = append(s.Blocks, int32(len(p.profile.Blocks)))
		p.profile.Blocks = append(p.profile.Blocks, b)
		switch {
		case at == fail || run.Kind == zydis.Return && len(returns) == 0:
			at = 0
		case run.Kind == zydis.Return:
			at, returns = returns[len(returns)-1], returns[:len(returns)-1]
		case run.Kind == zydis.Far:
			at = end
		case run.Kind == zydis.Call:
			returns = append(returns, end)
			at = end + uint64(run.Relative)
		case run.Kind == zydis.Jump:
			at = end + uint64(run.Relative)
		default:
			if at = end; taken[0] {
				at += uint64(run.Relative)
			}
			taken = taken[1:]
		}
	}
	p.profile.Threads = append(p.profile.Threads, paths.Thread{ID: id, Turns: []paths.Turn{s}})
}

// wrong is the program whose main reached its failure.
func wrong(t *testing.T, value int) *program {
	t.Helper()
	p := newProgram(t, fmt.Sprintf(counting, value))
	p.thread(1, create, []uint64{behindCreate}, false)
	p.thread(2, worker, []uint64{behindWorker})
	return p
}

// Two threads that add 1 to a number without a lock leave 1 or 2 there, nothing else.
func TestValuesOfALostUpdate(t *testing.T) {
	for value, possible := range []bool{false, true, true, false} {
		p := wrong(t, value)
		r, err := Build(p.image, p.profile, 1, 0, Options{})
		if err != nil {
			t.Fatal(err)
		}
		found := search.Search(r.Trace, model.SC, search.Options{})
		if want := map[bool]search.Answer{true: search.Found, false: search.None}[possible]; found.Answer != want {
			t.Errorf("%d at the end: %v, want %v", value, found.Answer, want)
		}
		if r.Threads[0].Message != "it is wrong" {
			t.Errorf("the message is %q", r.Threads[0].Message)
		}
	}
}

// Events are accesses to shared memory and synchronization: accesses to the stack, and to memory of
// main alone, are not among them.
func TestEventsAreWhatIsShared(t *testing.T) {
	p := wrong(t, 1)
	r, err := Build(p.image, p.profile, 1, 0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Shared, []Range{{data, data + symmem.Granule}}) {
		t.Errorf("shared are %x", r.Shared)
	}
	kinds := map[int][]model.Kind{}
	for i := range r.Trace.Events {
		e := &r.Trace.Events[i]
		kinds[e.Thread] = append(kinds[e.Thread], e.Kind)
		if (e.Kind == model.Read || e.Kind == model.Write) && (e.Addr != data || e.Size != 4) {
			t.Errorf("an access to %d bytes at %#x", e.Size, e.Addr)
		}
	}
	main, other := []model.Kind{model.Fork, model.Read, model.Write, model.Join, model.Read}, []model.Kind{model.Begin, model.Read, model.Write, model.End}
	if !slices.Equal(kinds[0], main) || !slices.Equal(kinds[1], other) {
		t.Errorf("main has %v, the other thread %v", kinds[0], kinds[1])
	}
	if r.Instructions == 0 || r.Threads[1].ID != 2 || r.Threads[1].Ending != Returned {
		t.Errorf("%+v", r.Threads)
	}
}

// Memory that may not be shared is left out and counted; a stop ends the work.
func TestOptionsOfSharing(t *testing.T) {
	none := Options{MayShare: func(addr uint64) bool { return addr != data }}
	p := wrong(t, 1) // the value if main runs alone
	r, err := Build(p.image, p.profile, 1, 0, none)
	if err != nil || len(r.Shared) != 0 || r.Excluded != 1 {
		t.Errorf("shared are %+v, %v", r, err)
	}
	p = wrong(t, 2)
	if _, err := Build(p.image, p.profile, 1, 0, none); err == nil {
		t.Error("main alone comes to 2")
	}
	r, err = Build(p.image, p.profile, 1, 0, Options{OnlyShared: true, Shared: []Range{{data, data + 4}}})
	if err != nil || !slices.Equal(r.Shared, []Range{{data, data + symmem.Granule}}) {
		t.Errorf("shared are %+v, %v", r, err)
	}
	if _, err := Build(p.image, p.profile, 1, 0, Options{Stop: func() bool { return true }}); !errors.Is(err, ErrStopped) {
		t.Errorf("stopped: %v", err)
	}
}

// A path that the code does not have is refused.
func TestForeignPath(t *testing.T) {
	p := wrong(t, 2)
	p.profile.Threads[0].Turns[0].Blocks = p.profile.Threads[0].Turns[0].Blocks[1:]
	if _, err := Build(p.image, p.profile, 1, 0, Options{}); err == nil {
		t.Error("a path without its begin is followed")
	}
	p = newProgram(t, fmt.Sprintf(counting, 5))
	p.thread(1, create, []uint64{behindCreate}, false)
	if r, err := Build(p.image, p.profile, 1, 0, Options{}); err == nil && search.Search(r.Trace, model.SC, search.Options{}).Answer == search.Found {
		t.Error("a thread that never ran adds 4")
	}
}
