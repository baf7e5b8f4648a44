// Package flagvalue has the values of the flags that configure the machine. Each checks its text when
// it is given, so that the error names the flag, and keeps the text for the reader of configurations.
package flagvalue

import (
	"errors"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
)

// A Value checks its text when it is set and keeps it for viper, which
// decodes it into the field.
type Value struct {
	kind  string
	check func(text string) error
	list  bool
	texts []string
}

// Set implements pflag.Value.
func (f *Value) Set(text string) error {
	if err := f.check(text); err != nil {
		return err
	}
	if !f.list {
		f.texts = nil
	}
	f.texts = append(f.texts, text)
	return nil
}

// String implements pflag.Value.
func (f *Value) String() string { return strings.Join(f.texts, " ") }

// Type implements pflag.Value.
func (f *Value) Type() string { return f.kind }

// Content is the value for viper.
func (f *Value) Content() any {
	if f.list {
		return f.texts
	}
	return f.texts[0]
}

// Texts are the texts that were given.
func (f *Value) Texts() []string { return f.texts }

// form is the error of a text that is not of the allowed form.
type form string

func (f form) Error() string { return string(f) }

// Text makes values of any text, which job.Options.Check checks; kind stands for it in the help.
func Text(kind string) func() *Value {
	return func() *Value { return &Value{kind: kind, check: func(string) error { return nil }} }
}

// Number is a whole number from 0 to 2^64-1.
func Number() *Value {
	return &Value{kind: "N", check: func(text string) error {
		_, err := strconv.ParseUint(text, 10, 64)
		if errors.Is(err, strconv.ErrRange) {
			return form("a whole number up to 18446744073709551615")
		}
		if err != nil {
			return form("a whole number, not negative")
		}
		return nil
	}}
}

// Positive is a number other than 0, which in options stands for the default.
func Positive() *Value {
	value := Number()
	isNumber := value.check
	value.check = func(text string) error {
		if n, err := strconv.ParseUint(text, 10, 64); err == nil && n == 0 {
			return form("a whole number from 1 on")
		}
		return isNumber(text)
	}
	return value
}

// PositiveFraction is a fraction other than 0, which in options stands for the default.
func PositiveFraction() *Value {
	value := Fraction()
	isNumber := value.check
	value.check = func(text string) error {
		if x, err := strconv.ParseFloat(text, 64); err == nil && x == 0 {
			return form("a number above 0, up to 1")
		}
		return isNumber(text)
	}
	return value
}

// Fraction is a number from 0 to 1.
func Fraction() *Value {
	return &Value{kind: "FRACTION", check: func(text string) error {
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return form("a number from 0 to 1")
		}
		return nil
	}}
}

// Yes is true or false.
func Yes() *Value {
	return &Value{kind: "bool", check: func(text string) error {
		if text != "true" && text != "false" {
			return form("true or false")
		}
		return nil
	}}
}

// Size is a number of bytes, such as 512M.
func Size() *Value {
	return &Value{kind: "SIZE", check: func(text string) error {
		return new(job.Size).UnmarshalText([]byte(text))
	}}
}

// Mounts is a list of folders, HOST:GUEST or HOST:GUEST:rw.
func Mounts() *Value {
	return &Value{kind: "HOST:GUEST", list: true, check: func(text string) error {
		return new(job.Mount).UnmarshalText([]byte(text))
	}}
}

// Ports is a list of published ports.
func Ports() *Value {
	return &Value{kind: "HOSTPORT:GUESTPORT", list: true, check: func(text string) error {
		return new(publish.Port).UnmarshalText([]byte(text))
	}}
}

// GuestPorts is a list of TCP ports of the guest.
func GuestPorts() *Value {
	return &Value{kind: "PORT", list: true, check: func(text string) error {
		if n, err := strconv.ParseUint(text, 10, 16); err != nil || n == 0 {
			return form("a port, 1 to 65535")
		}
		return nil
	}}
}

// Variables is a list of variables, NAME=VALUE.
func Variables() *Value {
	return &Value{kind: "NAME=VALUE", list: true, check: func(text string) error {
		if strings.Index(text, "=") < 1 {
			return form("NAME=VALUE")
		}
		return nil
	}}
}
