package main

import (
	"os"
	"os/exec"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/ownprogram"
)

// papersProgram measures the papers' tables and figures: it is not part of heddle itself.
const papersProgram = "heddle-papers"

var errPapersProgram = errs.Define("papers-program",
	"cannot start the program {program}, which measures the papers' tables and figures (it is in the Debian package heddle-papers, and make papers-programs builds it in the repository)",
	"The program is not in the folder of heddle's own program, in ../lib/heddle beside it, or in PATH.",
	"Install the Debian package heddle-papers, or build it in the repository with `make papers-programs`.")

func (a *app) papersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "papers [flags] [PAPER|PAPER/TABLE]...",
		Short: "Measure the tables and figures of the papers, and make a report of them",
		Long: `Measure the tables and figures of PEREGRINE, TERN, Frost and H3, and a comparison of systems for
deterministic multithreading (dmt), and make a report of them as an HTML page and a PDF, with the papers' own
numbers beside heddle's. --quick takes less than 20 minutes on two cores, and --paper, the papers' own sizes,
many hours. The Debian package heddle-papers has the program that does it; with it --help lists all flags.`,
		Example: `  heddle papers --quick
  heddle papers peregrine/table4 frost`,
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			path, err := exec.LookPath(ownprogram.Find(papersProgram))
			if err == nil {
				err = unix.Exec(path, append([]string{papersProgram}, args...), os.Environ())
			}
			if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				return c.Help()
			}
			return errPapersProgram.Wrap(err, papersProgram)
		},
	}
}
