package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// programs are the commands that run a program which their arguments name; exporters can
// keep the files that it changed.
var (
	programs  = []string{"run", "record", "find", "explore", "races", "frost run", "schedule record", "cache add"}
	exporters = []string{"run", "record", "races", "frost run", "schedule record"}
)

// printers are the commands that print the sentences of the catalogue that name an option
// without its command. The file of an experiment has the options of programs as fields.
var printers = map[string][]string{
	"cache-and-other":                       {"run"},
	"clients-cannot-connect":                programs,
	"enforcement-without-schedule":          {"run", "record"},
	"experiment-descriptors":                {"experiment run"},
	"experiment-inputs":                     {"experiment run"},
	"explore-cores":                         {"explore"},
	"explore-expect":                        {"explore"},
	"explore-many":                          {"explore"},
	"explore-output":                        {"explore"},
	"explore-state":                         {"explore"},
	"explore-state-file":                    {"explore"},
	"export-failed":                         exporters,
	"files-cannot-be-set-up":                programs,
	"find-file":                             {"find"},
	"find-native":                           {"find", "explore"},
	"find-native-differs":                   {"find", "explore"},
	"find-native-status":                    {"find", "explore"},
	"find-run-stopped":                      {"find"},
	"flow-of-what":                          {"trace flow"},
	"frost-no-place-for-trace":              {"frost run"},
	"gdb-address":                           {"run", "replay"},
	"gdb-and-other":                         {"run", "replay"},
	"instruction-of-level-3":                programs,
	"instruction-of-level-4":                programs,
	"interpreter-cannot-be-opened":          programs,
	"litmus-expect-missing":                 {"litmus"},
	"litmus-expectation":                    {"litmus"},
	"litmus-too-large":                      {"litmus"},
	"loader-needs-level-3":                  programs,
	"memoize-without-cache":                 {"run"},
	"memoized-level-for-one-input":          {"run"},
	"mount-guest-path":                      programs,
	"mount-kind":                            programs,
	"mount-over-own":                        programs,
	"mount-unusable":                        programs,
	"own-stdin-unreadable":                  {"run", "frost run", "cache add"},
	"pack-program-unreadable":               {"cache pack"},
	"pack-without-output":                   {"cache pack"},
	"parquet-not-written":                   {"experiment export"},
	"place-unknown":                         {"record", "replay", "races"},
	"policy-orders-too":                     {"run", "record", "schedule record", "cache add", "frost run"},
	"port-cannot-be-published":              {"run", "record", "races"},
	"preconditions-time-up":                 {"run", "cache add"},
	"program-cannot-be-opened":              programs,
	"program-does-not-fit":                  programs,
	"program-needs-avx512":                  programs,
	"program-needs-newer-processor":         programs,
	"publish-and-other":                     {"run"},
	"published-port-lost":                   {"run", "record", "races"},
	"record-without-output":                 {"record", "schedule record"},
	"recording-without-output":              {"replay"},
	"replica-cannot-be-committed":           {"frost run"},
	"reproduce-checkpoint-of-another-model": {"reproduce"},
	"reproduce-constraints-too-large":       {"reproduce"},
	"reproduce-cores-under-pso":             {"reproduce"},
	"reproduce-memory":                      {"reproduce"},
	"reproduce-no-schedule":                 {"reproduce"},
	"reproduce-nothing-found":               {"record"},
	"reproduce-other-failure":               {"reproduce"},
	"reproduce-timeout":                     {"reproduce"},
	"reproduce-values-chosen":               {"reproduce"},
	"reproduce-without-failure":             {"reproduce"},
	"reproduce-without-variable":            {"reproduce"},
	"rootfs-unusable":                       programs,
	"run-does-not-fail":                     {"minimize"},
	"run-in-windows":                        {"record"},
	"run-with-replicas-stopped":             {"frost run"},
	"schedule-after-library-lock":           {"schedule record"},
	"schedule-and-other":                    {"run", "record"},
	"schedule-of-traced-threads":            {"run", "schedule record"},
	"schedule-under-weak-memory":            {"run", "record", "schedule record", "cache add"},
	"schedule-without-output":               {"schedule compute"},
	"stdin-cannot-be-read":                  programs,
	"stdin-unreadable":                      programs,
	"store-buffers-cannot-begin":            programs,
	"store-format":                          {"experiment run", "experiment table"},
	"store-missing":                         {"experiment table"},
	"store-unusable":                        {"experiment run", "experiment table"},
	"stretch-with-region":                   {"record"},
	"table-format":                          {"experiment table"},
	"temporary-files":                       {"run"},
	"thread-spins-in-its-view":              {"record"},
	"trace-cannot-be-written":               {"record", "replay", "races", "schedule record", "minimize"},
	"trace-no-stream-named":                 {"trace export"},
	"unknown-task-rules":                    {"run"},
	"usage":                                 programs,
	"verify-writable":                       {"run"},
	"views-and-memory-model":                {"run", "record"},
	"window-schedules-damaged":              {"run"},
	"window-schedules-unreadable":           {"run"},
	"windows-and-other":                     {"run", "record"},
	"windows-without-memory-log":            {"run"},
	"windows-without-tasks":                 {"run"},
	"witnesses-cannot-be-written":           {"races"},
	"working-folder":                        programs,
}

// mention is an option in a text, with the command that the text names before it; "" if
// it names none.
type mention struct{ command, option string }

var (
	clauseEnd = regexp.MustCompile("[.;:,](?:[ `]|$)")
	// Options of the shell's ulimit and of gcc are not heddle's.
	others = regexp.MustCompile("ulimit -[a-z]| -m[a-z][a-z0-9=-]*")
	named  = regexp.MustCompile("\\bheddle((?: [a-z]+)+)|(?:^|[ (`])(--[a-z][a-z0-9-]*|-[a-z]\\b)")
)

// mentions are the options that a text names, and the commands, with option "". A command
// that is named counts to the end of its clause.
func mentions(tree map[string]*cobra.Command, text string) (found []mention) {
	for _, clause := range clauseEnd.Split(others.ReplaceAllString(text, ""), -1) {
		command := ""
		for _, m := range named.FindAllStringSubmatch(clause, -1) {
			if m[2] != "" {
				found = append(found, mention{command, m[2]})
			} else if name := longestCommand(tree, strings.Fields(m[1])); name != "" {
				command = name
			}
		}
	}
	return found
}

// longestCommand is the command that words begin with.
func longestCommand(tree map[string]*cobra.Command, words []string) string {
	for ; len(words) > 0; words = words[:len(words)-1] {
		if name := strings.Join(words, " "); tree[name] != nil {
			return name
		}
	}
	return ""
}

// commands are a command's subcommands by their names below it.
func commands(c *cobra.Command, above string, tree map[string]*cobra.Command) map[string]*cobra.Command {
	for _, sub := range c.Commands() {
		tree[above+sub.Name()] = sub
		commands(sub, above+sub.Name()+" ", tree)
	}
	return tree
}

func hasOption(c *cobra.Command, option string) bool {
	c.InitDefaultHelpFlag()
	if name, ok := strings.CutPrefix(option, "--"); ok {
		return c.Flags().Lookup(name) != nil || c.InheritedFlags().Lookup(name) != nil
	}
	return len(option) == 2 && c.Flags().ShorthandLookup(option[1:]) != nil
}

// catalogue are the entries of docs/errors.md, which holds all sentences: a test of
// package errs sees to that.
func catalogue(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]string{}
	for _, entry := range strings.Split(string(text), "\n## ")[1:] {
		id, rest, _ := strings.Cut(entry, "\n")
		entries[id] = rest
	}
	return entries
}

// TestCuresNameOptionsThatExist: each option that the catalogue names is one of the
// command that it is named for or, where the text names none, of every command that prints
// the sentence.
func TestCuresNameOptionsThatExist(t *testing.T) {
	a := &app{}
	tree := commands(a.root(nil), "", map[string]*cobra.Command{})
	unused := map[string]bool{}
	for id := range printers {
		unused[id] = true
	}
	for id, entry := range catalogue(t) {
		for _, m := range mentions(tree, entry) {
			of := []string{m.command}
			if m.command == "" {
				delete(unused, id)
				if of = printers[id]; of == nil {
					t.Errorf("%s: %s is named without a command; add to the table which commands print it:%s", id, m.option, entry)
				}
			}
			for _, name := range of {
				switch c := tree[name]; {
				case c == nil:
					t.Errorf("%s: there is no command %q", id, name)
				case !hasOption(c, m.option):
					t.Errorf("%s: heddle %s has no option %s:%s", id, name, m.option, entry)
				}
			}
		}
	}
	for id := range unused {
		t.Errorf("%s names no option without its command: it needs no entry in the table", id)
	}
}
