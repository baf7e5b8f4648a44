// Package errs is the catalogue of the sentences in which heddle reports a
// failure of its own: bad input, a missing library, a file it cannot read. It
// is a leaf: it imports nothing of heddle, so every package may use it.
//
// A package declares each sentence once, beside the code that finds the
// failure, with its cause and its cure:
//
//	var errDirectory = errs.Define("program-is-directory",
//		"cannot run {path}: it is a directory",
//		"The path after -- names a folder.",
//		"Name the program inside it.")
//
// and reports it with the values for the placeholders in their order, alone or
// on top of the error that caused it:
//
//	return errDirectory.New(path)
//	return errUnreadable.Wrap(err, path) // "cannot read F: permission denied"
//
// Callers and tests match with errors.Is(err, errDirectory), and may wrap
// further with fmt.Errorf("...: %w", err).
//
// Not here: guest-visible failures, which are errno values,
// and broken invariants, which panic with a message that begins "bug:".
//
// Invariants, held by the tests of this package, which read the source of the
// whole module:
//
//  1. Define is called with four string literals, as the initial value of a
//     package-level variable, and ids are unique in the module.
//  2. New and Wrap get as many values as the sentence has placeholders.
//  3. docs/errors.md holds exactly the defined sentences
//     (go test ./internal/errs -update rewrites it).
//  4. Packages whose errors reach the user make none except through a Kind.
package errs

import (
	"fmt"
	"io/fs"
	"strings"
)

// Kind is one catalogued sentence. It is itself an error so that it can be the
// target of errors.Is.
type Kind struct {
	id       string
	sentence string
	cause    string
	cure     string
}

// Define declares a sentence. The id is lower case words joined by hyphens.
// The sentence begins in lower case, ends without a full stop, and names its
// variable parts in braces: "cannot read {path}". Cause and cure are whole
// sentences for docs/errors.md.
func Define(id, sentence, cause, cure string) *Kind {
	return &Kind{id: id, sentence: sentence, cause: cause, cure: cure}
}

// ID is the sentence's name in docs/errors.md.
func (k *Kind) ID() string { return k.id }

// Error returns the id; a Kind by itself is only a target for errors.Is.
func (k *Kind) Error() string { return k.id }

// New returns the sentence with its placeholders filled in order.
func (k *Kind) New(values ...any) error {
	return &Error{kind: k, text: fill(k.sentence, values)}
}

// Wrap is New with a colon and the text of the underlying error at the end; the result unwraps to
// err. Of an error of a call to the host the text has the reason, and the path unless the sentence
// names it, but not the name of the call.
func (k *Kind) Wrap(err error, values ...any) error {
	sentence := fill(k.sentence, values)
	reason := err.Error()
	if call, ok := err.(*fs.PathError); ok {
		reason = call.Err.Error()
		if !strings.Contains(sentence, call.Path) {
			reason = call.Path + ": " + reason
		}
	}
	return &Error{kind: k, text: sentence + ": " + reason, err: err}
}

// Error is a reported failure of some Kind.
type Error struct {
	kind *Kind
	text string
	err  error
}

// Error returns the whole sentence, without a full stop.
func (e *Error) Error() string { return e.text }

// Kind returns the catalogued sentence that e is an instance of.
func (e *Error) Kind() *Kind { return e.kind }

// Unwrap returns the underlying error, or nil.
func (e *Error) Unwrap() error { return e.err }

// Is reports whether target is e's Kind.
func (e *Error) Is(target error) bool { return target == error(e.kind) }

// Placeholders returns the names in braces, in order.
func Placeholders(sentence string) []string {
	var names []string
	for {
		_, after, found := strings.Cut(sentence, "{")
		if !found {
			return names
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed {
			panic("bug: unclosed placeholder in sentence: " + sentence)
		}
		names = append(names, name)
		sentence = rest
	}
}

func fill(sentence string, values []any) string {
	if names := Placeholders(sentence); len(names) != len(values) {
		panic(fmt.Sprintf("bug: %d values for the %d placeholders of %q", len(values), len(names), sentence))
	}
	var b strings.Builder
	for _, value := range values {
		before, after, _ := strings.Cut(sentence, "{")
		_, rest, _ := strings.Cut(after, "}")
		b.WriteString(before)
		fmt.Fprint(&b, value)
		sentence = rest
	}
	b.WriteString(sentence)
	return b.String()
}
