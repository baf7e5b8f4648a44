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

func TestWrongNumberOfValuesPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_ = errSample.New("only one")
}
