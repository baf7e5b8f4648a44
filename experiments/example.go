package experiments

import (
	_ "embed" // for the example
	"errors"
	"os"
)

// Example is a commented experiment file that can be run as it is.
//
//go:embed example.yaml
var Example []byte

// WriteExample writes Example to a new file.
func WriteExample(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return errExists.New(path)
	}
	if err != nil {
		return errExample.Wrap(err, path)
	}
	_, err = file.Write(Example)
	if err := errors.Join(err, file.Close()); err != nil {
		return errExample.Wrap(err, path)
	}
	return nil
}
