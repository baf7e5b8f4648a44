package preconditions

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Texts returns the terms in readable form. Equations of consecutive bytes are joined, and
// so are consecutive bytes that lie between the same two characters.
func (s *Set) Texts() []string {
	var texts []string
	for i := 0; i < len(s.Terms); {
		text, n := byteStringText(s.Terms[i:])
		if n == 0 {
			text, n = byteRangeText(s.Terms[i:])
		}
		if n == 0 {
			text, n = contentText(s.Terms[i])
		}
		if n == 0 {
			text, n = cmp.Or(byteSetText(s.Terms[i]), s.Terms[i].String()), 1
		}
		texts = append(texts, text)
		i += n
	}
	return texts
}

// byteStringText returns the text of the equations of consecutive bytes at the beginning of
// terms, and their number.
func byteStringText(terms []*symbolic.Expr) (text string, n int) {
	base, first, value, ok := matchByteEquality(terms[0])
	if !ok {
		return "", 0
	}
	data := []byte{value}
	for _, t := range terms[1:] {
		b, at, v, ok := matchByteEquality(t)
		if !ok || b != base || at != first+len(data) {
			break
		}
		data = append(data, v)
	}
	return formatBytes(base, first, data), len(data)
}

// byteRangeText does the same for consecutive bytes that lie between two characters, with
// two terms for each byte.
func byteRangeText(terms []*symbolic.Expr) (text string, n int) {
	base, first, low, high, ok := matchByteRange(terms)
	if !ok {
		return "", 0
	}
	count := 1
	for {
		b, at, l, h, ok := matchByteRange(terms[2*count:])
		if !ok || b != base || at != first+count || l != low || h != high {
			break
		}
		count++
	}
	place := fmt.Sprintf("%s[%d]", base, first)
	if count > 1 {
		place = fmt.Sprintf("%s[%d:%d]", base, first, first+count)
	}
	return fmt.Sprintf("%s in %s..%s", place, strconv.QuoteRuneToASCII(rune(low)), strconv.QuoteRuneToASCII(rune(high))), 2 * count
}

// matchByteRange matches the two terms that a byte of an input is not below one printable
// character and not above another.
func matchByteRange(terms []*symbolic.Expr) (base string, at int, low, high byte, ok bool) {
	if len(terms) < 2 || terms[0].Op != symbolic.ULT || terms[1].Op != symbolic.ULT {
		return "", 0, 0, 0, false
	}
	least, s, greatest := terms[0].A, terms[0].B, terms[1].B
	if s != terms[1].A || !least.IsConst() || !greatest.IsConst() || s.Op != symbolic.Symbol || s.Bits != 8 {
		return "", 0, 0, 0, false
	}
	low, high = byte(least.Value.Lo)+1, byte(greatest.Value.Lo)-1
	base, at, ok = splitByteName(s.Name)
	return base, at, low, high, ok && low >= ' ' && high <= '~'
}

// formatBytes writes the equation of consecutive bytes. A whole argument, with the zero at
// its end, is written as a string.
func formatBytes(base string, first int, data []byte) string {
	n := len(data)
	text := strings.HasPrefix(base, "argv") || strings.HasPrefix(base, "env")
	switch {
	case n == 1 && data[0] == 0 && text:
		return fmt.Sprintf("%s[%d] = 0", base, first)
	case n == 1:
		return fmt.Sprintf("%s[%d] = %s", base, first, strconv.QuoteRuneToASCII(rune(data[0])))
	case first == 0 && data[n-1] == 0 && text:
		return fmt.Sprintf("%s = %q", base, data[:n-1])
	}
	return fmt.Sprintf("%s[%d:%d] = %q", base, first, first+n, data)
}

// byteSetText writes a term about one byte that is no plain comparison as the characters that satisfy it, or that do
// not; empty: they are no printable characters in a row.
func byteSetText(t *symbolic.Expr) string {
	s := onlySymbol([]*symbolic.Expr{t})
	if s == nil || s.Bits != 8 || isSimple([]*symbolic.Expr{t}, s) {
		return ""
	}
	program := symbolic.Compile([]*symbolic.Expr{t})
	var bounds [2][]int // of the values that satisfy it and of the others: first, last, and their number
	for v := range 256 {
		k := 0
		if program.FirstFalse([]symbolic.Value{{Lo: uint64(v)}}) >= 0 {
			k = 1
		}
		if bounds[k] == nil {
			bounds[k] = []int{v, v, 0}
		}
		bounds[k][1] = v
		bounds[k][2]++
	}
	for k, word := range []string{"in", "not in"} {
		b := bounds[k]
		if b == nil || b[0] < ' ' || b[1] > '~' || b[1]-b[0]+1 != b[2] {
			continue
		}
		return fmt.Sprintf("%s %s %s..%s", s.Name, word, strconv.QuoteRuneToASCII(rune(b[0])), strconv.QuoteRuneToASCII(rune(b[1])))
	}
	return ""
}
