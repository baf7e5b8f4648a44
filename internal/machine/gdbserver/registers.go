package gdbserver

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
)

// field is a register of the target description and where its bytes are.
type field struct {
	name, kind, group string
	bits              int
	get               func(r *Registers) []byte
}

func word64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func word32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }

// Offsets in an FXSAVE image (Intel SDM, volume 1, table 10-2).
const (
	fxStatus, fxTags, fxOpcode = 2, 4, 6
	fxIP, fxData, fxMXCSR      = 8, 16, 24
	fxStack, fxVectors         = 32, 160
)

// Selectors of a program under Linux.
const codeSelector, dataSelector = 0x33, 0x2b

func wordAt(r *Registers, at int) []byte {
	return word32(uint32(binary.LittleEndian.Uint16(r.FP[at:])))
}

// featureFields are the features of the description, each a list of registers; the order
// of all of them is that of the numbers.
var featureFields = sync.OnceValue(func() map[string][]field {
	var base, sse, avx []field
	names := strings.Fields("rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15")
	for i, name := range names {
		kind := "int64"
		if name == "rbp" || name == "rsp" {
			kind = "data_ptr"
		}
		base = append(base, field{name, kind, "", 64, func(r *Registers) []byte { return word64(r.GPR[i]) }})
	}
	base = append(base,
		field{"rip", "code_ptr", "", 64, func(r *Registers) []byte { return word64(r.RIP) }},
		field{"eflags", "i386_eflags", "", 32, func(r *Registers) []byte { return word32(uint32(r.RFLAGS)) }})
	for _, s := range []struct {
		name  string
		value uint32
	}{{"cs", codeSelector}, {"ss", dataSelector}, {"ds", 0}, {"es", 0}, {"fs", 0}, {"gs", 0}} {
		base = append(base, field{s.name, "int32", "", 32, func(*Registers) []byte { return word32(s.value) }})
	}
	for i := range 8 {
		at := fxStack + 16*i
		base = append(base, field{fmt.Sprintf("st%d", i), "i387_ext", "", 80, func(r *Registers) []byte { return r.FP[at : at+10] }})
	}
	for _, f := range []struct {
		name string
		get  func(r *Registers) []byte
	}{
		{"fctrl", func(r *Registers) []byte { return wordAt(r, 0) }},
		{"fstat", func(r *Registers) []byte { return wordAt(r, fxStatus) }},
		{"ftag", func(r *Registers) []byte { return word32(fullTags(r)) }},
		{"fiseg", func(*Registers) []byte { return word32(0) }},
		{"fioff", func(r *Registers) []byte { return r.FP[fxIP : fxIP+4] }},
		{"foseg", func(*Registers) []byte { return word32(0) }},
		{"fooff", func(r *Registers) []byte { return r.FP[fxData : fxData+4] }},
		{"fop", func(r *Registers) []byte { return wordAt(r, fxOpcode) }},
	} {
		base = append(base, field{f.name, "int", "float", 32, f.get})
	}
	for i := range 16 {
		at := fxVectors + 16*i
		sse = append(sse, field{fmt.Sprintf("xmm%d", i), "vec128", "", 128, func(r *Registers) []byte { return r.FP[at : at+16] }})
	}
	sse = append(sse, field{"mxcsr", "i386_mxcsr", "vector", 32, func(r *Registers) []byte { return r.FP[fxMXCSR : fxMXCSR+4] }})
	for i := range 16 {
		at := 16 * i
		avx = append(avx, field{fmt.Sprintf("ymm%dh", i), "uint128", "", 128, func(r *Registers) []byte { return r.YMMHigh[at : at+16] }})
	}
	return map[string][]field{
		"core": base, "sse": sse, "avx": avx,
		"linux": {{"orig_rax", "int", "", 64, func(r *Registers) []byte { return word64(r.Call) }}},
		"segments": {
			{"fs_base", "int", "", 64, func(r *Registers) []byte { return word64(r.FSBase) }},
			{"gs_base", "int", "", 64, func(r *Registers) []byte { return word64(r.GSBase) }},
		},
	}
})

// features is the order of the features of a processor. That with AVX is the order of GDB's own server.
func features(avx bool) []string {
	if avx {
		return []string{"core", "sse", "linux", "segments", "avx"}
	}
	return []string{"core", "sse", "linux", "segments"}
}

// fullTags returns the tag word of FSTENV, as far as an FXSAVE image has it: 0 for a register in
// use, 3 for an empty one.
func fullTags(r *Registers) uint32 {
	tags := uint32(0)
	for i := range 8 {
		if r.FP[fxTags]&(1<<i) == 0 {
			tags |= 3 << (2 * i)
		}
	}
	return tags
}

// allFields lists the registers of a processor by number.
func allFields(avx bool) []field {
	var list []field
	for _, f := range features(avx) {
		list = append(list, featureFields()[f]...)
	}
	return list
}

// encodeAll returns the answer to a g packet.
func (r *Registers) encodeAll() string {
	var b []byte
	for _, f := range allFields(r.HasAVX) {
		b = append(b, f.get(r)...)
	}
	return hex.EncodeToString(b)
}

// encodeOne returns the answer to a p packet; false: there is no such register.
func (r *Registers) encodeOne(number uint64) (string, bool) {
	list := allFields(r.HasAVX)
	if number >= uint64(len(list)) {
		return "", false
	}
	return hex.EncodeToString(list[number].get(r)), true
}

// featureTypes are the types that the features define, as in GDB's own descriptions of these
// features.
var featureTypes = map[string]string{
	"core": flagsType("i386_eflags", "CF 0 PF 2 AF 4 ZF 6 SF 7 TF 8 IF 9 DF 10 OF 11 NT 14 RF 16 VM 17 AC 18 VIF 19 VIP 20 ID 21"),
	"sse": `<vector id="v4f" type="ieee_single" count="4"/><vector id="v2d" type="ieee_double" count="2"/>` +
		`<vector id="v16i8" type="int8" count="16"/><vector id="v8i16" type="int16" count="8"/>` +
		`<vector id="v4i32" type="int32" count="4"/><vector id="v2i64" type="int64" count="2"/>` +
		`<union id="vec128"><field name="v4_float" type="v4f"/><field name="v2_double" type="v2d"/>` +
		`<field name="v16_int8" type="v16i8"/><field name="v8_int16" type="v8i16"/>` +
		`<field name="v4_int32" type="v4i32"/><field name="v2_int64" type="v2i64"/>` +
		`<field name="uint128" type="uint128"/></union>` +
		flagsType("i386_mxcsr", "IE 0 DE 1 ZE 2 OE 3 UE 4 PE 5 DAZ 6 IM 7 DM 8 ZM 9 OM 10 UM 11 PM 12 FZ 15"),
}

// flagsType describes a register of single bits: names and positions alternate.
func flagsType(id, list string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<flags id="%s" size="4">`, id)
	words := strings.Fields(list)
	for i := 0; i+1 < len(words); i += 2 {
		name, at := words[i], words[i+1]
		fmt.Fprintf(&b, `<field name="%s" start="%s" end="%s"/>`, name, at, at)
	}
	b.WriteString("</flags>")
	return b.String()
}

// targetDescription returns target.xml.
func targetDescription(avx bool) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target>` +
		`<architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>`)
	number := 0
	for _, name := range features(avx) {
		fmt.Fprintf(&b, `<feature name="org.gnu.gdb.i386.%s">%s`, name, featureTypes[name])
		for _, f := range featureFields()[name] {
			fmt.Fprintf(&b, `<reg name="%s" bitsize="%d" type="%s" regnum="%d"`, f.name, f.bits, f.kind, number)
			if f.group != "" {
				fmt.Fprintf(&b, ` group="%s"`, f.group)
			}
			b.WriteString("/>")
			number++
		}
		b.WriteString("</feature>")
	}
	b.WriteString("</target>")
	return b.String()
}
