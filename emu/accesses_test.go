package emu_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// TestAccessLog: the expected accesses are from the descriptions of the instructions in the Intel SDM,
// volume 2. A fault leaves none, and no log takes more than a few hundred.
func TestAccessLog(t *testing.T) { onEngines(t, testAccessLog) }

func testAccessLog(t tester) {
	b := newBench(t, `mov rbx, 0x600010
		mov [rbx], eax
		add qword ptr [rbx+8], 1
		movups xmm0, [rbx+16]
		push rax
		lea rdi, [rbx+0x100]
		mov ecx, 2
		mov rsi, rbx
		rep movsw
		lock inc byte ptr [rbx]
		mov ecx, 1000
		lea rdi, [rbx+0x1000]
		rep stosb
		mov [rbx+0x10000], eax
		syscall`)
	log, err := b.CPU.LogAccesses()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	data := uint64(b.Space.Get(dataBase).Page()) * arch.PageSize
	stack := uint64(b.Space.Get(stackBase).Page()) * arch.PageSize
	var want []string
	for line := range strings.FieldsSeq("W10+4 R18+8 W18+8 R20+16 Wff8+8 R10+2 W110+2 R12+2 W112+2 R10+1 W10+1") {
		var kind byte
		var at uint64
		var size int
		if _, err := fmt.Sscanf(line, "%c%x+%d", &kind, &at, &size); err != nil {
			t.Fatal(err)
		}
		from := data
		if at == 0xff8 {
			from = stack
		}
		for k := 0; k < size; k += 8 { // an engine may make 16 bytes in two parts
			want = append(want, fmt.Sprintf("%c%x+%d", kind, from+at+uint64(k), min(8, size-k)))
		}
	}
	b.CPU.Run(arch.Limit{Instructions: 14, Exact: true})
	all, ok := log.Take(nil)
	var got []string
	for _, a := range all {
		kind := 'R'
		if a.Write {
			kind = 'W'
		}
		for k := 0; k < a.Size; k += 8 {
			got = append(got, fmt.Sprintf("%c%x+%d", kind, a.Physical+uint64(k), min(8, a.Size-k)))
		}
	}
	if !ok || !slices.Equal(got, want) {
		t.Errorf("accesses %v, %v, want %v", got, ok, want)
	}
	if s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopFault {
		t.Errorf("%+v", s)
	}
	if _, ok := log.Take(nil); ok {
		t.Error("a log of 1,000 accesses is complete")
	}
	if all, ok := log.Take(nil); !ok || len(all) != 0 {
		t.Errorf("%v, %v after the log was taken", all, ok)
	}
}
