package concolic

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Derived is a symbol that stands for a function's result.
type Derived struct {
	Summary
	// Input is the name of the input that is the argument: its bytes are Input[0] and
	// following, up to a zero.
	Input string
}

// Value is the result for another input: the argument without the zero at its end.
func (d *Derived) Value(argument []byte) symbolic.Value {
	n := uint64(len(argument))
	switch d.Result {
	case "number":
		n = parseNumber(argument)
	case "real":
		n = parseReal(argument, d.Bits)
	}
	if d.Bits == 32 {
		n &= 0xffffffff
	}
	return symbolic.Value{Lo: n}
}

// parseNumber is strtol(3) to base 10.
func parseNumber(text []byte) uint64 {
	text = bytes.TrimLeft(text, " \t\n\v\f\r")
	negative := bytes.HasPrefix(text, []byte("-"))
	if negative || bytes.HasPrefix(text, []byte("+")) {
		text = text[1:]
	}
	limit := uint64(1<<63 - 1)
	if negative {
		limit++
	}
	n := uint64(0)
	for _, c := range text {
		if c < '0' || c > '9' {
			break
		}
		d := uint64(c - '0')
		if n > (limit-d)/10 {
			n = limit
			break
		}
		n = 10*n + d
	}
	if negative {
		return -n
	}
	return n
}

// realForm matches the numbers that strtod(3) reads, without the sign: hexadecimal,
// decimal, infinite, or NaN.
var realForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?[0-9]+)?|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|infinity|inf|nan)`)
})

// parseReal is strtod(3), or strtof(3), as bits. It ignores a payload in brackets after
// nan.
func parseReal(text []byte, bits int) uint64 {
	text = bytes.TrimLeft(text, " \t\n\v\f\r")
	sign := uint64(0)
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		if text[0] == '-' {
			sign = 1 << (bits - 1)
		}
		text = text[1:]
	}
	form := strings.ToLower(string(realForm().Find(text)))
	if form == "" {
		return 0
	}
	if strings.HasPrefix(form, "0x") && !strings.Contains(form, "p") {
		form += "p0"
	}
	x, _ := strconv.ParseFloat(form, bits) // infinite if it is too great
	switch {
	case form == "nan" && bits == 64:
		return sign | 0x7ff8<<48
	case form == "nan":
		return sign | 0x7fc0<<16
	case bits == 32:
		return sign | uint64(math.Float32bits(float32(x)))
	}
	return sign | math.Float64bits(x)
}
