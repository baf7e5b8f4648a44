// Command heddle-plot draws a plot for heddle experiment plot, which starts it: it reads a request as JSON
// from standard input (package plots) and writes the files that the request names.
package main

import (
	"fmt"
	"os"

	"github.com/heddle-dmt/heddle/experiments/plots/draw"
)

func main() {
	if err := draw.Serve(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
