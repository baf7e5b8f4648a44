package preconditions

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// The content of a file, or of standard input, as a whole is a symbol too: sha256(argv[2]) is the first 128 bits of its
// SHA-256, as a number with the first byte highest.

// ContentTerm returns the term that a file, named as in bytes' names ("file(argv[2])" or "stdin"), has the content with
// a SHA-256, in hexadecimal. If that is unknown no input satisfies the term.
func ContentTerm(p *symbolic.Pool, name, hash string) *symbolic.Expr {
	if inner, ok := cutAround(name, "file(", ")"); ok {
		name = inner
	}
	b, err := hex.DecodeString(hash)
	if err != nil || len(b) != sha256.Size {
		return p.Bool(false)
	}
	return p.Eq(p.Symbol("sha256("+name+")", 128), p.Const(hashValue(b), 128))
}

func hashValue(b []byte) symbolic.Value {
	return symbolic.Value{Hi: binary.BigEndian.Uint64(b), Lo: binary.BigEndian.Uint64(b[8:])}
}

// contentHash computes the symbol's value; false: the content cannot be read.
func contentHash(c Content) (symbolic.Value, bool) {
	h := sha256.New()
	n, err := io.Copy(h, io.NewSectionReader(c, 0, c.Size()))
	return hashValue(h.Sum(nil)), err == nil && n == c.Size()
}

// contentText writes a term about a content; n is 1 if it is one.
func contentText(t *symbolic.Expr) (text string, n int) {
	if t.Op != symbolic.Eq || t.A.Op != symbolic.Symbol || !t.B.IsConst() {
		return "", 0
	}
	inner, ok := cutAround(t.A.Name, "sha256(", ")")
	if !ok {
		return "", 0
	}
	return fmt.Sprintf("%s has the recorded content (SHA-256 %016x%016x...)", inner, t.B.Value.Hi, t.B.Value.Lo), 1
}

// TextOf returns the argument, or the variable's value, whose bytes have a name; false: it is the name of other bytes.
func TextOf(name string, args, env []string) (string, bool) {
	x, ok := sourceOfInput(name)
	if !ok || !strings.HasPrefix(name, "argv[") && !strings.HasPrefix(name, "env[") {
		return "", false
	}
	return x.readText(&Input{Args: args, Env: env})
}
