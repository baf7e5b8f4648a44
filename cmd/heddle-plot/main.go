// Command heddle-plot draws plots for heddle experiment plot and writes tables for heddle experiment export --parquet,
// which start it (package program).
package main

import (
	"fmt"
	"os"

	"github.com/heddle-dmt/heddle/experiments/plots/program"
)

func main() {
	if err := program.Serve(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
