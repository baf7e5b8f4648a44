package errs

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

var (
	errSample = &Kind{id: "sample", sentence: "cannot read {path}: line {line} is {found}"}
	errOther  = &Kind{id: "other", sentence: "nothing to do"}
)

func TestNewFillsPlaceholdersInOrder(t *testing.T) {
	err := errSample.New("a{b}.yaml", 3, "empty")
	if got, want := err.Error(), "cannot read a{b}.yaml: line 3 is empty"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := errOther.New().Error(), "nothing to do"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMatching(t *testing.T) {
	err := fmt.Errorf("run 3: %w", errSample.Wrap(fs.ErrNotExist, "x", 1, "y"))
	if !errors.Is(err, errSample) || errors.Is(err, errOther) {
		t.Errorf("errors.Is does not distinguish the kinds of %v", err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not unwrap to its cause", err)
	}
	if got, want := err.Error(), "run 3: cannot read x: line 1 is y: file does not exist"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var e *Error
	if !errors.As(err, &e) || e.Kind() != errSample || e.Kind().ID() != "sample" {
		t.Errorf("errors.As does not find the kind of %v", err)
	}
}

// An error of a call to the host adds its reason, and its path unless the sentence has it.
func TestWrapOfHostErrors(t *testing.T) {
	err := &fs.PathError{Op: "lstat", Path: "/x", Err: fs.ErrNotExist}
	for sentence, want := range map[string]string{
		"cannot mount /x": "cannot mount /x: file does not exist",
		"cannot mount":    "cannot mount: /x: file does not exist",
	} {
		if got := (&Kind{id: "x", sentence: sentence}).Wrap(err).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWrongNumberOfValuesPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_ = errSample.New("only one")
}
