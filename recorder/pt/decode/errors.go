package decode

import (
	"fmt"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/zydis"
	"github.com/heddle-dmt/heddle/recorder/pt"
)

// The kinds of errors, for errors.Is.
var (
	ErrMalformed = errs.Define("branch-trace-packet-malformed",
		"branch trace, byte {offset}: malformed packet {kind}: {reason}",
		"The bytes are no packet of Intel Processor Trace: the trace is damaged, or the file is not a trace.",
		"Record the run again. The part before the place is right, and decoding can continue at the next PSB packet.")
	ErrTruncated = errs.Define("branch-trace-truncated",
		"branch trace, byte {offset}: the stream ends within {packet}",
		"The trace is cut: its recording did not end in order, or the file was copied in part.",
		"Record the run again. The part before the place is right.")
	ErrMisplaced = errs.Define("branch-trace-packet-misplaced",
		"branch trace, byte {offset}: {kind} cannot stand here: {reason}",
		"The packet is whole, but contradicts those before it: some bytes of the trace are damaged or missing.",
		"Record the run again. Decoding can continue at the next PSB packet.")
	ErrForeign = errs.Define("branch-trace-packet-foreign",
		"branch trace, byte {offset}: {kind} is a packet that heddle does not decode",
		"The trace is damaged, or a processor wrote it that traces more than the branches of 64-bit user code.",
		"Give heddle traces that heddle recorded.")
	ErrMismatch = errs.Define("branch-trace-not-of-code",
		"branch trace, byte {offset}: {kind} does not fit the {instruction} at {address}",
		"The packets do not match the branches of the code: the trace is damaged, or it belongs to other code.",
		"Decode the trace with the code that was recorded with it. Decoding can continue at the next PSB packet.")
	ErrNoCode = errs.Define("branch-trace-without-code",
		"branch trace, byte {offset}: no code is known at {address}",
		"The packets lead to an address from which no code was recorded: the trace or the recorded code is damaged.",
		"Decode the trace with the code that was recorded with it. Decoding can continue at the next PSB packet.")
	ErrNoInstruction = errs.Define("branch-trace-no-instruction",
		"branch trace, byte {offset}: the code at {address} is no instruction",
		"The packets lead to bytes that are no instruction: the trace or the recorded code is damaged.",
		"Decode the trace with the code that was recorded with it. Decoding can continue at the next PSB packet.")
	ErrUnsynchronized = errs.Define("branch-trace-without-psb",
		"branch trace, byte {offset}: no PSB packet from here to the end",
		"A decoder can begin at PSB packets alone, and the bytes have none: the trace is damaged, or the file is not a trace.",
		"Record the run again.")
	ErrUnreadable = errs.Define("branch-trace-unreadable",
		"branch trace, byte {offset}: cannot read on",
		"Reading the file or folder that holds the trace failed, for the reason that follows.",
		"Remove the reason that the message ends with.")
)

// Error is why decoding ended before the end of the stream.
type Error struct {
	// Offset is the first byte of the packet that the error was found at.
	Offset uint64
	// Kind is one of the errors above.
	Kind *errs.Kind
	err  error
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap gives the catalogued sentence.
func (e *Error) Unwrap() error { return e.err }

func (d *Decoder) errorAtPacket(kind *errs.Kind, values ...any) error {
	return &Error{Offset: d.packetAt, Kind: kind, err: kind.New(append([]any{d.packetAt}, values...)...)}
}

func (d *Decoder) misplaced(reason string) error {
	return d.errorAtPacket(ErrMisplaced, d.packet.Kind, reason)
}

// malformed makes an error of one of pt.Parse.
func (d *Decoder) malformed(err error) error {
	if err == pt.ErrShort {
		return d.errorAtPacket(ErrTruncated, "a packet")
	}
	return d.errorAtPacket(ErrMalformed, d.packet.Kind, err)
}

var instructionNames = [...]string{
	zydis.Straight: "instruction", zydis.Jump: "direct jump", zydis.Call: "direct call", zydis.Conditional: "conditional branch",
	zydis.IndirectJump: "indirect jump", zydis.IndirectCall: "indirect call", zydis.Return: "return", zydis.Far: "far transfer",
}

// errorMismatch is the error of a packet that does not fit the last instruction of a run.
func (d *Decoder) errorMismatch(r *Run) error {
	last := r.End() - uint64(r.lengths[r.Count-1])
	return d.errorAtPacket(ErrMismatch, d.packet.Kind, instructionNames[r.Kind], fmt.Sprintf("%#x", last))
}

// errorNoCode is the error of a run without code, with the reason.
func (d *Decoder) errorNoCode(r *Run) error {
	kind := ErrNoCode
	if r.Kind == zydis.Invalid {
		kind = ErrNoInstruction
	}
	return d.errorAtPacket(kind, fmt.Sprintf("%#x", r.Addr))
}
