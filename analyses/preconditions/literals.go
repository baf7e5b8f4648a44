package preconditions

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// A Literals says which arguments a set requires to be certain texts, as text: the number of arguments, a colon, and the
// positions of these. All inputs that satisfy the set have the same Key.
type Literals string

// Literals returns the arguments that the set requires to be certain texts, and the key of these.
func (s *Set) Literals() (l Literals, key string) {
	values := map[string]map[int]byte{} // by argument and position
	for _, t := range s.Terms {
		if base, at, value, ok := matchByteEquality(t); ok && strings.HasPrefix(base, "argv[") {
			if values[base] == nil {
				values[base] = map[int]byte{}
			}
			values[base][at] = value
		}
	}
	args, places := make([]string, s.Args), []string(nil)
	for i := range args {
		if text, ok := wholeText(values[fmt.Sprintf("argv[%d]", i)]); ok {
			args[i], places = text, append(places, strconv.Itoa(i))
		}
	}
	l = Literals(fmt.Sprintf("%d:%s", s.Args, strings.Join(places, ",")))
	key, _ = l.Key(args)
	return l, key
}

// wholeText is the text of which all bytes up to the zero are known.
func wholeText(values map[int]byte) (string, bool) {
	var text []byte
	for {
		b, known := values[len(text)]
		if !known || b == 0 {
			return string(text), known
		}
		text = append(text, b)
	}
}

// Key is a hash of the arguments at the positions; false: there is another number of arguments.
func (l Literals) Key(args []string) (string, bool) {
	count, places, _ := strings.Cut(string(l), ":")
	if count != strconv.Itoa(len(args)) {
		return "", false
	}
	h := sha256.New()
	for place := range strings.SplitSeq(places, ",") {
		if i, err := strconv.Atoi(place); err == nil && i >= 0 && i < len(args) {
			fmt.Fprintf(h, "%d %q\n", i, args[i])
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), true
}
