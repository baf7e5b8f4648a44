package debuginfo

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// demangleRust demangles a name of Rust; false if the symbol is not one, or has
// constructs that are not supported (identifiers in Punycode, constants that are not
// integers, characters or booleans). Hashes, the disambiguators of crates and suffixes
// of the code generator are left out, as nm -C does.
func demangleRust(symbol string) (name string, ok bool) {
	symbol, _, _ = strings.Cut(symbol, ".llvm.") // a suffix of the code generator
	if strings.HasPrefix(symbol, "_R") {
		return demangleRustV0(symbol[len("_R"):])
	}
	if rest, found := strings.CutPrefix(symbol, "_ZN"); found {
		return demangleRustLegacy(rest)
	}
	return "", false
}

// demangleRustLegacy demangles "LENGTH IDENT ... 17h HASH E", which is the Itanium
// C++ ABI's nested name with a hash as its last part.
func demangleRustLegacy(rest string) (string, bool) {
	const hashLength = len("h0123456789abcdef")
	var parts []string
	for !strings.HasPrefix(rest, "E") {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n == 0 || n > len(rest)-digits {
			return "", false
		}
		parts, rest = append(parts, rest[digits:digits+n]), rest[digits+n:]
	}
	if len(parts) < 2 || rest != "E" {
		return "", false
	}
	hash := parts[len(parts)-1]
	if len(hash) != hashLength || hash[0] != 'h' || strings.Trim(hash[1:], "0123456789abcdef") != "" {
		return "", false
	}
	parts = parts[:len(parts)-1]
	for i, part := range parts {
		text, ok := unescapeRustLegacy(part)
		if !ok {
			return "", false
		}
		parts[i] = text
	}
	return strings.Join(parts, "::"), true
}

// rustEscapes are the characters of escapes "$NAME$".
var rustEscapes = map[string]string{
	"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ",",
}

// unescapeRustLegacy replaces the escapes of an identifier.
func unescapeRustLegacy(part string) (string, bool) {
	if strings.HasPrefix(part, "_$") { // an identifier does not begin with $
		part = part[1:]
	}
	var b strings.Builder
	for part != "" {
		switch {
		case strings.HasPrefix(part, ".."):
			b.WriteString("::")
			part = part[2:]
		case part[0] == '$':
			name, rest, found := strings.Cut(part[1:], "$")
			text, known := rustEscapes[name]
			if !known && strings.HasPrefix(name, "u") {
				code, err := strconv.ParseUint(name[1:], 16, 21)
				text, known = string(rune(code)), err == nil
			}
			if !found || !known {
				return "", false
			}
			b.WriteString(text)
			part = rest
		default:
			b.WriteByte(part[0])
			part = part[1:]
		}
	}
	return b.String(), true
}

// rustParser reads the grammar of RFC 2603 ("v0") and writes the name. Methods panic
// with errRustName on text that is not of the grammar.
type rustParser struct {
	input     string
	next      int // index in input
	depth     int
	lifetimes uint64 // that enclosing binders introduce
	output    strings.Builder
	silent    int // output is discarded while it is above zero
}

// errRustName is the panic value of rustParser.
type errRustName struct{}

// Bounds on names: back references can make a short name exponentially long.
const (
	maxRustDepth  = 200
	maxRustLength = 1 << maxDemangled
)

func demangleRustV0(input string) (name string, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, expected := r.(errRustName); !expected {
				panic(r)
			}
			name, ok = "", false
		}
	}()
	input, _, _ = strings.Cut(input, ".") // suffixes of the code generator
	p := &rustParser{input: input}
	p.path(true)
	if p.next < len(p.input) { // the crate that instantiated a generic function
		p.silent++
		p.path(false)
		p.silent--
	}
	if p.next != len(p.input) {
		return "", false
	}
	return p.output.String(), true
}

func (p *rustParser) fail() { panic(errRustName{}) }

func (p *rustParser) print(parts ...string) {
	if p.silent > 0 {
		return
	}
	for _, s := range parts {
		p.output.WriteString(s)
	}
	if p.output.Len() > maxRustLength {
		p.fail()
	}
}

// peek returns the next character, 0 at the end.
func (p *rustParser) peek() byte {
	if p.next < len(p.input) {
		return p.input[p.next]
	}
	return 0
}

func (p *rustParser) read() byte {
	c := p.peek()
	if c == 0 {
		p.fail()
	}
	p.next++
	return c
}

// accept reads a character if it is the next one.
func (p *rustParser) accept(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.next++
	return true
}

// enter counts the depth of the recursion; the caller calls the result at its end.
func (p *rustParser) enter() (leave func()) {
	if p.depth++; p.depth > maxRustDepth {
		p.fail()
	}
	return func() { p.depth-- }
}

// base62 reads { 0-9a-zA-Z } "_".
func (p *rustParser) base62() uint64 {
	if p.accept('_') {
		return 0
	}
	n := uint64(0)
	for {
		var digit uint64
		switch c := p.read(); {
		case c == '_':
			return n + 1
		case '0' <= c && c <= '9':
			digit = uint64(c - '0')
		case 'a' <= c && c <= 'z':
			digit = uint64(c-'a') + 10
		case 'A' <= c && c <= 'Z':
			digit = uint64(c-'A') + 36
		default:
			p.fail()
		}
		if n > math.MaxUint64/62-62 {
			p.fail()
		}
		n = n*62 + digit
	}
}

// optionalBase62 reads a number after a tag: 0 without the tag, else the number and 1.
func (p *rustParser) optionalBase62(tag byte) uint64 {
	if !p.accept(tag) {
		return 0
	}
	return p.base62() + 1
}

// identifier reads a name and its disambiguator.
func (p *rustParser) identifier() (name string, disambiguator uint64) {
	disambiguator = p.optionalBase62('s')
	return p.plainIdentifier(), disambiguator
}

func (p *rustParser) plainIdentifier() string {
	if p.peek() == 'u' { // Punycode
		p.fail()
	}
	start := p.next
	for '0' <= p.peek() && p.peek() <= '9' {
		p.next++
		if p.input[start] == '0' {
			break
		}
	}
	n, err := strconv.Atoi(p.input[start:p.next])
	if err != nil {
		p.fail()
	}
	p.accept('_')
	if n > len(p.input)-p.next {
		p.fail()
	}
	name := p.input[p.next : p.next+n]
	p.next += n
	return name
}

// backReference reads a position and parses there again.
func (p *rustParser) backReference(parse func()) {
	start := p.next - 1
	position := p.base62()
	if position >= uint64(start) {
		p.fail()
	}
	if p.silent > 0 {
		return
	}
	after := p.next
	p.next = int(position)
	parse()
	p.next = after
}

// path reads a path. In the place of a value, generic arguments are written with
// "::<", in that of a type with "<".
func (p *rustParser) path(value bool) {
	defer p.enter()()
	switch p.read() {
	case 'C':
		name, _ := p.identifier()
		p.print(name)
	case 'M':
		p.implPath()
		p.print("<")
		p.typ()
		p.print(">")
	case 'X':
		p.implPath()
		p.traitImplementation()
	case 'Y':
		p.traitImplementation()
	case 'N':
		p.nestedPath(value)
	case 'I':
		p.path(value)
		if value {
			p.print("::")
		}
		p.print("<")
		p.genericArguments()
		p.print(">")
	case 'B':
		p.backReference(func() { p.path(value) })
	default:
		p.fail()
	}
}

// implPath reads the path of an impl block, which is not written.
func (p *rustParser) implPath() {
	p.optionalBase62('s')
	p.silent++
	p.path(false)
	p.silent--
}

// traitImplementation reads a type and a trait.
func (p *rustParser) traitImplementation() {
	p.print("<")
	p.typ()
	p.print(" as ")
	p.path(false)
	p.print(">")
}

// nestedPath reads a namespace, a path and an identifier in it.
func (p *rustParser) nestedPath(value bool) {
	namespace := p.read()
	p.path(value)
	name, disambiguator := p.identifier()
	switch {
	case 'a' <= namespace && namespace <= 'z':
		if name != "" {
			p.print("::", name)
		}
	case 'A' <= namespace && namespace <= 'Z':
		kind := string(namespace)
		switch namespace {
		case 'C':
			kind = "closure"
		case 'S':
			kind = "shim"
		}
		if name != "" {
			kind += ":" + name
		}
		p.print("::{", kind, "#", strconv.FormatUint(disambiguator, 10), "}")
	default:
		p.fail()
	}
}

// genericArguments reads arguments to the closing E.
func (p *rustParser) genericArguments() {
	p.list(", ", func() {
		switch {
		case p.accept('L'):
			p.lifetime(p.base62())
		case p.accept('K'):
			p.constant()
		default:
			p.typ()
		}
	})
}

// list reads items to the closing E and returns how many there were.
func (p *rustParser) list(separator string, item func()) (count int) {
	for ; !p.accept('E'); count++ {
		if count > 0 {
			p.print(separator)
		}
		item()
	}
	return count
}

// lifetime writes a lifetime, which is given by the distance to its binder.
func (p *rustParser) lifetime(index uint64) {
	if index == 0 {
		p.print("'_")
		return
	}
	if index > p.lifetimes {
		p.fail()
	}
	const letters = 26
	if n := p.lifetimes - index; n < letters {
		p.print("'", string(rune('a'+n)))
	} else {
		p.print("'_", strconv.FormatUint(n, 10))
	}
}

// binder reads the lifetimes that a type introduces; the caller calls the result
// at the type's end.
func (p *rustParser) binder() (leave func()) {
	count := p.optionalBase62('G')
	if count > maxRustDepth {
		p.fail()
	}
	for i := range count {
		p.lifetimes++
		if i == 0 {
			p.print("for<")
		} else {
			p.print(", ")
		}
		p.lifetime(1)
	}
	if count > 0 {
		p.print("> ")
	}
	return func() { p.lifetimes -= count }
}

// rustBasicTypes are the types of one letter.
var rustBasicTypes = map[byte]string{
	'a': "i8", 'b': "bool", 'c': "char", 'd': "f64", 'e': "str", 'f': "f32", 'h': "u8", 'i': "isize", 'j': "usize",
	'l': "i32", 'm': "u32", 'n': "i128", 'o': "u128", 'p': "_", 's': "i16", 't': "u16", 'u': "()", 'v': "...",
	'x': "i64", 'y': "u64", 'z': "!",
}

// typ reads a type.
func (p *rustParser) typ() {
	defer p.enter()()
	c := p.read()
	if name, ok := rustBasicTypes[c]; ok {
		p.print(name)
		return
	}
	switch c {
	case 'A':
		p.print("[")
		p.typ()
		p.print("; ")
		p.constant()
		p.print("]")
	case 'S':
		p.print("[")
		p.typ()
		p.print("]")
	case 'T':
		p.print("(")
		if p.list(", ", p.typ) == 1 {
			p.print(",")
		}
		p.print(")")
	case 'R', 'Q':
		p.print("&")
		if p.accept('L') {
			if index := p.base62(); index != 0 {
				p.lifetime(index)
				p.print(" ")
			}
		}
		if c == 'Q' {
			p.print("mut ")
		}
		p.typ()
	case 'P':
		p.print("*const ")
		p.typ()
	case 'O':
		p.print("*mut ")
		p.typ()
	case 'F':
		p.functionType()
	case 'D':
		p.traitObject()
	case 'B':
		p.backReference(p.typ)
	default:
		p.next--
		p.path(false)
	}
}

// functionType reads a function's signature.
func (p *rustParser) functionType() {
	defer p.binder()()
	if p.accept('U') {
		p.print("unsafe ")
	}
	if p.accept('K') {
		abi := "C"
		if !p.accept('C') {
			abi = strings.ReplaceAll(p.plainIdentifier(), "_", "-")
		}
		p.print(`extern "`, abi, `" `)
	}
	p.print("fn(")
	p.list(", ", p.typ)
	p.print(")")
	if !p.accept('u') { // the result is ()
		p.print(" -> ")
		p.typ()
	}
}

// traitObject reads the traits and the lifetime of a dyn type.
func (p *rustParser) traitObject() {
	p.print("dyn ")
	leave := p.binder()
	p.list(" + ", p.boundTrait)
	leave()
	if !p.accept('L') {
		p.fail()
	}
	if index := p.base62(); index != 0 {
		p.print(" + ")
		p.lifetime(index)
	}
}

// boundTrait reads a trait and the types that are bound in it: Trait<A, Item = B>.
func (p *rustParser) boundTrait() {
	open := p.openGenericPath()
	for p.accept('p') {
		if open {
			p.print(", ")
		} else {
			p.print("<")
		}
		open = true
		p.print(p.plainIdentifier(), " = ")
		p.typ()
	}
	if open {
		p.print(">")
	}
}

// openGenericPath reads a path and leaves its list of generic arguments open; it
// reports whether there is one.
func (p *rustParser) openGenericPath() (open bool) {
	defer p.enter()()
	switch {
	case p.accept('B'):
		p.backReference(func() { open = p.openGenericPath() })
	case p.accept('I'):
		p.path(false)
		p.print("<")
		p.genericArguments()
		open = true
	default:
		p.path(false)
	}
	return open
}

// constant reads a constant of a generic argument or an array's length.
func (p *rustParser) constant() {
	defer p.enter()()
	switch c := p.read(); c {
	case 'B':
		p.backReference(p.constant)
	case 'p':
		p.print("_")
	case 'a', 's', 'l', 'x', 'n', 'i', 'h', 't', 'm', 'y', 'o', 'j':
		if p.accept('n') {
			p.print("-")
		}
		digits, n, err := p.hexadecimal()
		if err != nil {
			p.print("0x", digits)
			return
		}
		p.print(strconv.FormatUint(n, 10))
	case 'b', 'c':
		_, n, err := p.hexadecimal()
		switch {
		case err != nil || c == 'b' && n > 1 || c == 'c' && (n > math.MaxInt32 || !utf8.ValidRune(rune(n))):
			p.fail()
		case c == 'b':
			p.print(strconv.FormatBool(n == 1))
		default:
			p.print(strconv.QuoteRune(rune(n)))
		}
	default:
		p.fail()
	}
}

// hexadecimal reads digits to "_". An error means that the number has more than 64
// bits.
func (p *rustParser) hexadecimal() (digits string, n uint64, err error) {
	start := p.next
	for c := p.read(); c != '_'; c = p.read() {
		if !strings.ContainsRune("0123456789abcdef", rune(c)) {
			p.fail()
		}
	}
	if digits = p.input[start : p.next-1]; digits == "" {
		return "0", 0, nil
	}
	n, err = strconv.ParseUint(digits, 16, 64)
	return digits, n, err
}
