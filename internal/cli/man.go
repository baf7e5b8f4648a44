package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// WriteManPages writes a man page for a command and for each command below it into a folder:
// heddle.1, heddle-run.1 and so on. Source names the program and its version. It returns the
// pages' paths.
func WriteManPages(dir string, c *cobra.Command, source string, write func(path string, text []byte) error) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var page strings.Builder
	writeManPage(&page, c, source)
	path := filepath.Join(dir, pageName(c)+".1")
	if err := write(path, []byte(page.String())); err != nil {
		return nil, err
	}
	paths := []string{path}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" {
			continue
		}
		below, err := WriteManPages(dir, sub, source, write)
		if err != nil {
			return nil, err
		}
		paths = append(paths, below...)
	}
	return paths, nil
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// writeManPage writes one page in the language of man(7).
func writeManPage(w io.Writer, c *cobra.Command, source string) {
	fmt.Fprintf(w, ".TH %s 1 \"\" %q \"User commands\"\n", strings.ToUpper(pageName(c)), source)
	fmt.Fprintf(w, ".SH NAME\n%s \\- %s\n", roff(pageName(c)), roff(lowerFirst(c.Short)))
	fmt.Fprintf(w, ".SH SYNOPSIS\n.B %s\n", roff(usageLine(c)))
	fmt.Fprintf(w, ".SH DESCRIPTION\n")
	for i, paragraph := range strings.Split(description(c), "\n\n") {
		if i > 0 {
			fmt.Fprintln(w, ".PP")
		}
		fmt.Fprintln(w, roff(strings.TrimSpace(paragraph)))
	}
	if commands := availableCommands(c); len(commands) > 0 {
		fmt.Fprintf(w, ".SH COMMANDS\n")
		for _, sub := range commands {
			if sub.Name() != "help" {
				fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short))
			}
		}
	}
	fmt.Fprintf(w, ".SH OPTIONS\n")
	groups := groupsOf(c)
	for _, group := range groups {
		if len(groups) > 1 {
			fmt.Fprintf(w, ".SS %s\n", roff(group.title))
		}
		for _, f := range group.flags {
			names, text := describeFlag(f)
			fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(names)), roff(text))
		}
	}
	if c.HasExample() {
		fmt.Fprintf(w, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	var others []string
	if parent := c.Parent(); parent != nil {
		others = append(others, pageName(parent))
	}
	for _, sub := range availableCommands(c) {
		if sub.Name() != "help" {
			others = append(others, pageName(sub))
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(w, ".SH SEE ALSO\n")
		for i, name := range others {
			end := ","
			if i == len(others)-1 {
				end = ""
			}
			fmt.Fprintf(w, ".BR %s (1)%s\n", roff(name), end)
		}
	}
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// roff escapes a text for man(7).
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
