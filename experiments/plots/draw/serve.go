package draw

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/internal/outfile"
)

// Serve reads a plots.Request as JSON and writes its files, whose folders it makes.
func Serve(from io.Reader) error {
	var request plots.Request
	if err := json.NewDecoder(from).Decode(&request); err != nil {
		return err
	}
	for _, file := range request.Files {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		err := outfile.Write(file, func(w io.Writer) error { return Write(w, request.Plot, strings.TrimPrefix(filepath.Ext(file), ".")) })
		if err != nil {
			return err
		}
	}
	return nil
}
