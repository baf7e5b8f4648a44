package litmus

import (
	"strconv"
	"strings"
)

// token is a word of a litmus test. Numbers have their sign.
type token struct {
	text string
	line int
	kind tokenKind
}

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokName
	tokNumber
	tokPunct
)

// symbols of more than one character, longest first.
var symbols = []string{"/\\", "\\/", "=>", "!=", "=="}

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// splitTokens splits a text that begins at the given line.
func splitTokens(text string, line int) []token {
	var out []token
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case isLetter(c) || c == '.' && i+1 < len(text) && isLetter(text[i+1]):
			end := i + 1
			for end < len(text) && (isLetter(text[end]) || isDigit(text[end]) || text[end] == '.') {
				end++
			}
			out = append(out, token{text[i:end], line, tokName})
			i = end
		case isDigit(c) || c == '-' && i+1 < len(text) && isDigit(text[i+1]):
			end := i + 1
			for end < len(text) && (isLetter(text[end]) || isDigit(text[end])) {
				end++
			}
			out = append(out, token{text[i:end], line, tokNumber})
			i = end
		default:
			n := 1
			for _, s := range symbols {
				if strings.HasPrefix(text[i:], s) {
					n = len(s)
					break
				}
			}
			out = append(out, token{text[i : i+n], line, tokPunct})
			i += n
		}
	}
	return out
}

// reader walks over tokens.
type reader struct {
	file string
	last int // line of the end
	toks []token
}

func newReader(file, text string, line int) *reader {
	return &reader{file: file, toks: splitTokens(text, line), last: line + strings.Count(strings.TrimRight(text, "\n\t "), "\n")}
}

func (r *reader) peekToken() token {
	if len(r.toks) == 0 {
		return token{line: r.last}
	}
	return r.toks[0]
}

func (r *reader) peekTokenAt(n int) token {
	if n < len(r.toks) {
		return r.toks[n]
	}
	return token{line: r.last}
}

func (r *reader) nextToken() token {
	t := r.peekToken()
	if len(r.toks) > 0 {
		r.toks = r.toks[1:]
	}
	return t
}

// acceptText takes the next token if it is that text.
func (r *reader) acceptText(text string) bool {
	if t := r.peekToken(); t.kind == tokPunct && t.text == text {
		r.nextToken()
		return true
	}
	return false
}

// acceptWord takes the next token if it is that word.
func (r *reader) acceptWord(text string) bool {
	if t := r.peekToken(); t.kind == tokName && t.text == text {
		r.nextToken()
		return true
	}
	return false
}

func (r *reader) expectText(text string) error {
	if r.acceptText(text) {
		return nil
	}
	return r.errorExpected(quoteTrimmed(text))
}

// errorExpected is the error that the next token is not the expected one.
func (r *reader) errorExpected(expected string) error {
	t := r.peekToken()
	found := ""
	if t.kind != tokEnd {
		found = quoteTrimmed(t.text)
	}
	return r.positionOf(t).errorSyntax(found, expected)
}

func (r *reader) positionOf(t token) position { return position{r.file, t.line} }

// readNumber reads a number: decimal, hexadecimal or octal, up to 64 bits of
// either signedness.
func (r *reader) readNumber() (int64, error) {
	t := r.peekToken()
	n, ok := parseNumber(t.text)
	if t.kind != tokNumber || !ok {
		return 0, r.errorExpected("a number")
	}
	r.nextToken()
	return n, nil
}

func parseNumber(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return n, true
	}
	n, err := strconv.ParseUint(text, 0, 64)
	return int64(n), err == nil
}

// readBounded reads a number from 0 to limit-1.
func (r *reader) readBounded(limit int64, expected string) (int, error) {
	if n, ok := parseNumber(r.peekToken().text); !ok || n < 0 || n >= limit {
		return 0, r.errorExpected(expected)
	}
	n, err := r.readNumber()
	return int(n), err
}

func (r *reader) readName(expected string) (token, error) {
	t := r.peekToken()
	if t.kind != tokName {
		return t, r.errorExpected(expected)
	}
	return r.nextToken(), nil
}

// stripComments blanks out (* nested comments *), keeping lines. Text in double quotes, as
// descriptions are, has none.
func stripComments(file, text string) (string, error) {
	out := []byte(text)
	depth, line, opened, quoted := 0, 1, 0, false
	for i := 0; i < len(out); i++ {
		pair := string(out[i:min(i+2, len(out))])
		switch {
		case out[i] == '\n':
			line++
			quoted = false
			continue
		case depth == 0 && out[i] == '"':
			quoted = !quoted
			continue
		case quoted:
			continue
		case pair == "(*":
			if depth == 0 {
				opened = line
			}
			depth++
			out[i], out[i+1] = ' ', ' '
			i++
			continue
		case pair == "*)" && depth > 0:
			depth--
			out[i], out[i+1] = ' ', ' '
			i++
			continue
		}
		if depth > 0 {
			out[i] = ' '
		}
	}
	if depth > 0 {
		return "", position{file, opened}.errorSyntax("a comment without an end", "*)")
	}
	return string(out), nil
}
