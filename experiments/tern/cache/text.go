package cache

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/internal/errs"
)

var errEntryText = errs.Define("cache-entry-unreadable",
	"the preconditions of entry {entry} cannot be read",
	"The entry was written by another version of heddle.",
	"Remove it with heddle cache rm.")

// entryLines is the number of operations and constraints on a page about an entry.
const entryLines = 40

// WriteText writes an entry in readable form: a page of it, or all if full is set.
func (e *Entry) WriteText(to io.Writer, full bool) error {
	if err := e.File.WriteSummary(to); err != nil {
		return err
	}
	set, err := preconditions.Parse(e.File.Preconditions, symbolic.NewPool())
	if err != nil {
		return errEntryText.Wrap(err, e.Short())
	}
	fmt.Fprintf(to, "tried         %d\nfollowed      %d\nthe program   %s\n", e.Tries, e.Reuses, e.Program)
	if len(e.File.Varying) > 0 {
		fmt.Fprintf(to, "may differ    %s\n", strings.Join(e.File.Varying, " "))
	}
	if full {
		fmt.Fprintf(to, "preconditions:\n  %s\n\n", strings.Join(set.Texts(), "\n  "))
		return e.File.WriteLines(to, math.MaxInt)
	}
	lines, cut := set.Page()
	fmt.Fprintf(to, "preconditions:\n  %s\n", strings.Join(lines, "\n  "))
	if cut > 0 {
		fmt.Fprintf(to, "%d terms were cut or left out; --full prints all\n", cut)
	}
	fmt.Fprintln(to)
	return e.File.WriteLines(to, entryLines)
}
