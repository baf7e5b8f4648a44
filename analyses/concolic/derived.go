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
	// following, up to a zero. It is "argv[1][2:]" if the argument begins at byte 2 of an input, and
	// "stdin[2:9]" if it is known to contain bytes 2 to 8 only: the number must end in these.
	Input string
}

// Range returns the input without the part after its name, and the bytes that are the argument; to is -1 if they
// extend to the zero.
func (d *Derived) Range() (input string, from, to int) {
	m := rangeForm().FindStringSubmatch(d.Input)
	if m == nil {
		return d.Input, 0, -1
	}
	from, _ = strconv.Atoi(m[2])
	if to = -1; m[3] != "" {
		to, _ = strconv.Atoi(m[3])
	}
	return m[1], from, to
}

// rangeForm matches an input with a range of bytes.
var rangeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(.*)\[([0-9]+):([0-9]*)\]$`) })

// Value is the result for another input: the argument without the zero at its end.
func (d *Derived) Value(argument []byte) symbolic.Value {
	n := uint64(len(argument))
	switch d.Result {
	case "number", "digits":
		n = parseNumber(argument)
	case "unsigned":
		n = parseUnsigned(argument)
	case "real":
		n = parseReal(argument, d.Bits)
	}
	if d.Bits == 32 {
		n &= 0xffffffff
	}
	return symbolic.Value{Lo: n}
}

// numberDigits returns where the digits of the number at the beginning of a text begin, and how many there are, as
// strtol(3) reads it to base 10.
func numberDigits(text []byte) (at, digits int) {
	at = len(text) - len(bytes.TrimLeft(text, " \t\n\v\f\r"))
	if at < len(text) && (text[at] == '-' || text[at] == '+') {
		at++
	}
	for at+digits < len(text) && text[at+digits]-'0' < 10 {
		digits++
	}
	return at, digits
}

// EndsNumber reports whether the number at the beginning of a text ends before the text does.
func EndsNumber(text []byte) bool {
	at, digits := numberDigits(text)
	return at+digits < len(text)
}

// Defines reports whether the result exists for an argument: a number of an argument whose end is not known must end in
// it, and one of digits consists of these alone.
func (d *Derived) Defines(argument []byte) bool {
	at, digits := numberDigits(argument)
	_, _, to := d.Range()
	switch {
	case d.Result == "digits":
		return digits == len(argument)
	case to >= 0:
		return at+digits < len(argument)
	}
	return true
}

// parseNumber is strtol(3) to base 10.
func parseNumber(text []byte) uint64 {
	at, digits := numberDigits(text)
	if at > 0 && text[at-1] == '-' {
		n, _ := parseDigits(text[at:at+digits], 1<<63)
		return -n
	}
	n, _ := parseDigits(text[at:at+digits], 1<<63-1)
	return n
}

// parseUnsigned is strtoul(3) to base 10: it negates a number with a minus, unless that is too great.
func parseUnsigned(text []byte) uint64 {
	at, digits := numberDigits(text)
	n, fits := parseDigits(text[at:at+digits], math.MaxUint64)
	if fits && at > 0 && text[at-1] == '-' {
		return -n
	}
	return n
}

// parseDigits returns the number that digits are, or limit if it is greater, and reports whether it is not.
func parseDigits(digits []byte, limit uint64) (n uint64, fits bool) {
	for _, c := range digits {
		d := uint64(c - '0')
		if n > (limit-d)/10 {
			return limit, false
		}
		n = 10*n + d
	}
	return n, true
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
