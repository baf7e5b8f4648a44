// Command heddle-plot draws a plot for heddle experiment plot, which starts it: it reads a request as JSON
// from standard input (package plots) and writes the files that the request names.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/experiments/plots/draw"
	"github.com/heddle-dmt/heddle/internal/outfile"
)

func main() { os.Exit(Main(os.Stdin, os.Stderr)) }

// Main carries out a request and returns the exit status.
func Main(stdin io.Reader, stderr io.Writer) int {
	var request plots.Request
	err := json.NewDecoder(stdin).Decode(&request)
	for _, file := range request.Files {
		if err == nil {
			err = os.MkdirAll(filepath.Dir(file), 0o755)
		}
		if err == nil {
			err = outfile.Write(file, func(w io.Writer) error {
				return draw.Write(w, request.Plot, strings.TrimPrefix(filepath.Ext(file), "."))
			})
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
