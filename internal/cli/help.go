package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// width is the number of columns that help is written for.
const width = 100

// WriteHelp writes a command's help: its description, its usage, examples, commands, and flags
// by group.
func WriteHelp(w io.Writer, c *cobra.Command) {
	if text := description(c); text != "" {
		fmt.Fprintf(w, "%s\n\n", text)
	}
	WriteUsage(w, c)
}

// WriteUsage writes a command's help without its description.
func WriteUsage(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "Usage:\n  %s\n", usageLine(c))
	if c.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
	}
	if commands := availableCommands(c); len(commands) > 0 {
		fmt.Fprintf(w, "\nCommands:\n")
		column := 0
		for _, sub := range commands {
			column = max(column, len(sub.Name()))
		}
		for _, sub := range commands {
			fmt.Fprintf(w, "  %-*s  %s\n", column, sub.Name(), sub.Short)
		}
	}
	for _, group := range groupsOf(c) {
		fmt.Fprintf(w, "\n%s:\n", group.title)
		column := 0
		for _, f := range group.flags {
			names, _ := describeFlag(f)
			column = min(max(column, len(names)), 30)
		}
		for _, f := range group.flags {
			names, text := describeFlag(f)
			writeColumns(w, names, text, column)
		}
	}
	if len(availableCommands(c)) > 0 {
		fmt.Fprintf(w, "\n`%s COMMAND --help` describes a command.\n", c.CommandPath())
	}
}

func description(c *cobra.Command) string {
	if c.Long != "" {
		return strings.TrimSpace(c.Long)
	}
	return c.Short
}

func usageLine(c *cobra.Command) string {
	if len(availableCommands(c)) > 0 && !c.Runnable() {
		return c.CommandPath() + " COMMAND"
	}
	if len(availableCommands(c)) > 0 {
		return c.CommandPath() + " COMMAND [flags]"
	}
	if parent := c.Parent(); parent != nil {
		return parent.CommandPath() + " " + c.Use
	}
	return c.Use
}

func availableCommands(c *cobra.Command) (list []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			list = append(list, sub)
		}
	}
	return list
}

// writeColumns writes a flag's names and, beside them, its description in lines.
func writeColumns(w io.Writer, names, text string, column int) {
	if len(names) > column {
		fmt.Fprintf(w, "  %s\n", names)
		names = ""
	}
	for i, line := range wrap(text, width-column-4) {
		if i > 0 {
			names = ""
		}
		fmt.Fprintf(w, "  %-*s  %s\n", column, names, line)
	}
}

// wrap breaks a text into lines of a number of columns.
func wrap(text string, columns int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > columns {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
