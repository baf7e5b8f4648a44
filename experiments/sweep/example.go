package sweep

import (
	_ "embed" // for the example
	"os"

	"github.com/heddle-dmt/heddle/internal/outfile"
)

// Example is a commented experiment file that can be run as it is.
//
//go:embed example.yaml
var Example []byte

// WriteExample writes Example to a new file.
func WriteExample(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return errExists.New(path)
	}
	if err := outfile.WriteBytes(path, Example); err != nil {
		return errExample.Wrap(err, path)
	}
	return nil
}
