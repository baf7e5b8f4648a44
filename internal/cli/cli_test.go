package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// sampleCommand is a command with a subcommand that has flags of each kind.
func sampleCommand() (root, sub *cobra.Command) {
	root = &cobra.Command{Use: "loom", Short: "Weave cloth", Long: "loom weaves cloth."}
	root.CompletionOptions.DisableDefaultCmd = true
	sub = &cobra.Command{
		Use: "weave [flags] PATTERN", Short: "Weave a pattern", Example: "  loom weave twill",
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	flags := sub.Flags()
	flags.SortFlags = false
	flags.Int("threads", 4, "`N` threads of warp")
	flags.Duration("rest", 0, "rest between rows")
	flags.Float64("tension", 0.5, "tension of the warp, from 0 to 1, which is a long description that does not fit one line of the help")
	flags.BoolP("loud", "l", false, "print each row")
	flags.Bool("twist", true, "twist the weft")
	flags.StringSlice("colour", nil, "`NAME` of a colour")
	Group(flags, "Warp", "threads", "tension")
	GroupNew(flags, "Weft", func() { flags.String("weft", "", "`MATERIAL` of the weft") })
	SetDefault(flags, "weft", "wool, or cotton with --loud")
	root.AddCommand(sub)
	return root, sub
}

func TestHelpListsFlagsByGroupWithDefaults(t *testing.T) {
	root, sub := sampleCommand()
	var help strings.Builder
	WriteHelp(&help, sub)
	want := `Weave a pattern

Usage:
  loom weave [flags] PATTERN

Examples:
  loom weave twill

Warp:
      --threads N      N threads of warp (default: 4)
      --tension float  tension of the warp, from 0 to 1, which is a long description that does not
                       fit one line of the help (default: 0.5)

Flags:
      --rest duration  rest between rows (default: none)
  -l, --loud           print each row
      --twist          twist the weft (default: on; --twist=false turns it off)
      --colour NAME    NAME of a colour

Weft:
      --weft MATERIAL  MATERIAL of the weft (default: wool, or cotton with --loud)
`
	if help.String() != want {
		t.Errorf("help is:\n%s\nwant:\n%s", help.String(), want)
	}
	help.Reset()
	WriteHelp(&help, root)
	want = "loom weaves cloth.\n\nUsage:\n  loom COMMAND\n\nCommands:\n  weave  Weave a pattern\n\n`loom COMMAND --help` describes a command.\n"
	if help.String() != want {
		t.Errorf("help is:\n%s\nwant:\n%s", help.String(), want)
	}
}

// TestFlagErrorsAreInPlainWords parses wrong command lines with pflag, whose errors are those
// of Go.
func TestFlagErrorsAreInPlainWords(t *testing.T) {
	for line, want := range map[string]Problem{
		"--thraeds 3":                   {Text: "there is no flag --thraeds (did you mean --threads?)"},
		"--thread=3":                    {Text: "there is no flag --thread (did you mean --threads?)"},
		"--max-threads=3":               {Text: "there is no flag --max-threads (did you mean --threads?)"},
		"--between":                     {Text: `there is no flag --between; "between" is in the description of --rest`},
		"--zzz":                         {Text: "there is no flag --zzz"},
		"-x":                            {Text: "there is no flag -x"},
		"--threads":                     {Text: "--threads needs a value"},
		"--threads many":                {Flag: "threads", Found: `"many"`, Allowed: "a whole number"},
		"--threads 1e99":                {Flag: "threads", Found: `"1e99"`, Allowed: "a whole number"},
		"--threads 9223372036854775808": {Flag: "threads", Found: `"9223372036854775808"`, Allowed: "a whole number up to 9223372036854775807"},
		"--tension tight":               {Flag: "tension", Found: `"tight"`, Allowed: "a number"},
		"--rest long":                   {Flag: "rest", Found: `"long"`, Allowed: "a duration, such as 90s, 5m or 2h"},
		"--loud=maybe":                  {Flag: "loud", Found: `"maybe"`, Allowed: "true or false"},
	} {
		_, sub := sampleCommand()
		err := sub.ParseFlags(strings.Fields(line))
		if err == nil {
			t.Errorf("%s is accepted", line)
			continue
		}
		if got := ExplainFlagError(sub, err); got != want {
			t.Errorf("%s (%v): %+v, want %+v", line, err, got, want)
		}
	}
}

func TestAFlagsOwnErrorIsKept(t *testing.T) {
	_, sub := sampleCommand()
	err := errors.New(`invalid argument "a\"b" for "-w, --weft" flag: a material that burns`)
	want := Problem{Flag: "weft", Found: `"a\"b"`, Allowed: "a material that burns"}
	if got := ExplainFlagError(sub, err); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestNearestName(t *testing.T) {
	names := []string{"run", "record", "replay", "reproduce", "races", "trace"}
	for word, want := range map[string]string{
		"rnu": "run", "recrod": "record", "replya": "replay", "rep": "replay", "race": "races", "traces": "trace",
		"reproduct": "reproduce", "x": "", "something": "", "": "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
	if got := UnknownCommand(func() *cobra.Command { root, _ := sampleCommand(); return root }(), "waeve"); got != `there is no command "waeve" (did you mean weave?)` {
		t.Error(got)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"abc", "abd", 1}, {"ab", "ba", 1}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("distance of %q and %q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestManPages(t *testing.T) {
	root, _ := sampleCommand()
	dir := filepath.Join(t.TempDir(), "man1")
	paths, err := WriteManPages(dir, root, "loom 1.0", func(path string, text []byte) error { return os.WriteFile(path, text, 0o644) })
	if err != nil || len(paths) != 2 || paths[1] != filepath.Join(dir, "loom-weave.1") {
		t.Fatal(paths, err)
	}
	text, err := os.ReadFile(paths[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		".TH LOOM-WEAVE 1 \"\" \"loom 1.0\" \"User commands\"\n.SH NAME\nloom\\-weave \\- weave a pattern\n",
		".SS Warp\n.TP\n.B \\-\\-threads N\nN threads of warp (default: 4)\n",
		".SH EXAMPLES\n.nf\n  loom weave twill\n.fi\n",
		".SH SEE ALSO\n.BR loom (1)\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %q:\n%s", want, text)
		}
	}
	if got := roff(".so it's `a-b`\\"); got != `\&.so it\(aqs \(gaa\-b\(ga\e` {
		t.Errorf("escaped text is %s", got)
	}
}

func TestDurationsAreShort(t *testing.T) {
	c := &cobra.Command{Use: "x"}
	c.Flags().Duration("limit", time.Hour, "bound")
	if got := defaultOf(c.Flags().Lookup("limit")); got != "1h" {
		t.Errorf("default is %q", got)
	}
}
