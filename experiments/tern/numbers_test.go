package tern_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// A number is one precondition wherever the program reads it: at the end of an option, in a line of standard input, as
// a real or an unsigned number. Inputs that give the same number of operations follow the schedule, others are not
// admitted.
func TestNumbersAnywhere(t *testing.T) {
	bin := gcctest.File(t, "testdata/numbers.c", "-O2")
	type input struct {
		args  []string
		stdin string
	}
	for _, c := range []struct {
		recorded input
		term     string
		same     []input
		others   []input
	}{
		{
			input{[]string{"-n12"}, ""}, "atoi(argv[1][2:])",
			[]input{{[]string{"-n13"}, ""}, {[]string{"-n012"}, ""}, {[]string{"-n12x"}, ""}},
			[]input{{[]string{"-n14"}, ""}, {[]string{"-n1"}, ""}, {[]string{"-n"}, ""}, {[]string{"-u12"}, ""}, {[]string{"-"}, ""}},
		},
		{
			input{[]string{"-u12"}, ""}, "strtoul(argv[1][2:])",
			[]input{{[]string{"-u13"}, ""}, {[]string{"-u+12"}, ""}}, []input{{[]string{"-u120"}, ""}, {[]string{"-n12"}, ""}},
		},
		{
			input{[]string{"12.5", "x"}, ""}, "strtod(argv[1])",
			[]input{{[]string{"13", "x"}, ""}, {[]string{"1.2e1", "x"}, ""}}, []input{{[]string{"14", "x"}, ""}, {[]string{"x", "x"}, ""}},
		},
		{
			input{[]string{"-"}, "12 apples\n"}, "atoi(stdin[0:10])",
			[]input{{[]string{"-"}, "13 apples\n"}, {[]string{"-"}, " 12 pears\n"}},
			[]input{{[]string{"-"}, "14 apples\n"}, {[]string{"-"}, "1234567890"}, {[]string{"-"}, "12\n"}},
		},
	} {
		configured := func(in input) machine.Config {
			m := config(t.TempDir(), append([]string{bin}, in.args...)...)
			name := filepath.Join(t.TempDir(), "stdin")
			if err := os.WriteFile(name, []byte(in.stdin), 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { file.Close() })
			m.Stdin = file
			return m
		}
		m := memoize(t, configured(c.recorded), tern.Options{})
		set, err := preconditions.Parse(m.File.Preconditions, symbolic.NewPool())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(set.String(), c.term) {
			t.Errorf("%v: %s, want terms about %s", c.recorded, set, c.term)
		}
		for _, in := range slices.Concat(c.same, c.others) {
			config := configured(in)
			why := tern.Admits(&config, m.File)
			if want := slices.ContainsFunc(c.same, func(s input) bool { return slices.Equal(s.args, in.args) && s.stdin == in.stdin }); (why == "") != want {
				t.Errorf("recorded on %v, %v is admitted: %v; %s", c.recorded, in, why == "", set)
			}
			if why != "" {
				continue
			}
			if r, out := enforced(t, configured(in), m); !r.Schedule.Followed || out != "done\n" {
				t.Errorf("recorded on %v, %v does not follow: %s %s", c.recorded, in, r.Schedule.Reason, out)
			}
		}
	}
}
