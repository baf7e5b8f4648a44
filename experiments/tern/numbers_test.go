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
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// A number is one precondition wherever the program reads it: at the end of an option, in a line of standard input, as
// a real or an unsigned number. Inputs that give the same number of operations follow the schedule, others are not
// admitted.
func TestNumbersAnywhere(t *testing.T) {
	tryNumbers(t, gcctest.File(t, "testdata/numbers.c", "-O2"), []numberCase{
		{
			numberInput{[]string{"-n12"}, ""},
			"atoi(argv[1][2:])",
			[]numberInput{{[]string{"-n13"}, ""}, {[]string{"-n012"}, ""}, {[]string{"-n12x"}, ""}},
			[]numberInput{{[]string{"-n14"}, ""}, {[]string{"-n1"}, ""}, {[]string{"-n"}, ""}, {[]string{"-u12"}, ""}, {[]string{"-"}, ""}},
		},
		{
			numberInput{[]string{"-u12"}, ""},
			"strtoul(argv[1][2:])",
			[]numberInput{{[]string{"-u13"}, ""}, {[]string{"-u+12"}, ""}},
			[]numberInput{{[]string{"-u120"}, ""}, {[]string{"-n12"}, ""}},
		},
		{
			numberInput{[]string{"12.5", "x"}, ""},
			"strtod(argv[1])",
			[]numberInput{{[]string{"13", "x"}, ""}, {[]string{"1.2e1", "x"}, ""}},
			[]numberInput{{[]string{"14", "x"}, ""}, {[]string{"x", "x"}, ""}},
		},
		{
			numberInput{[]string{"-"}, "12 apples\n"},
			"atoi(stdin[0:10])",
			[]numberInput{{[]string{"-"}, "13 apples\n"}, {[]string{"-"}, " 12 pears\n"}},
			[]numberInput{{[]string{"-"}, "14 apples\n"}, {[]string{"-"}, "1234567890"}, {[]string{"-"}, "12\n"}},
		},
		{
			numberInput{[]string{"scanf"}, "12\n"},
			"number(stdin[0:2])",
			[]numberInput{{[]string{"scanf"}, "13 "}, {[]string{"scanf"}, "12,5"}},
			[]numberInput{{[]string{"scanf"}, "14\n"}, {[]string{"scanf"}, "1\n"}, {[]string{"scanf"}, "120\n"}, {[]string{"scanf"}, ""}},
		},
		{
			numberInput{[]string{"=12"}, ""},
			"number(argv[1][1:3])",
			[]numberInput{{[]string{"=13"}, ""}},
			[]numberInput{{[]string{"=11"}, ""}, {[]string{"=123"}, ""}, {[]string{"=1x"}, ""}, {[]string{"=+12"}, ""}},
		},
	})
}

// C++ reads numbers by templates, which have no summaries.
func TestNumbersOfStreams(t *testing.T) {
	testsize.SkipQuick(t)
	tryNumbers(t, gcctest.File(t, "testdata/streams.cc", "-O2", "-lstdc++"), []numberCase{
		{
			numberInput{nil, "12\n"},
			"number(stdin[0:2])",
			[]numberInput{{nil, "13\n"}, {nil, "12 7"}},
			[]numberInput{{nil, "14\n"}, {nil, "1\n"}, {nil, "120\n"}, {nil, ""}},
		},
		{
			numberInput{[]string{"12"}, ""},
			"number(argv[1][0:2])",
			[]numberInput{{[]string{"13"}, ""}},
			[]numberInput{{[]string{"11"}, ""}, {[]string{"123"}, ""}, {[]string{"1x"}, ""}},
		},
		{
			numberInput{[]string{"+12"}, ""},
			"number(argv[1][1:3])",
			[]numberInput{{[]string{"+13"}, ""}},
			[]numberInput{{[]string{"+11"}, ""}, {[]string{"12"}, ""}, {[]string{"+1"}, ""}},
		},
	})
}

// numberInput is an input of a program that reads a number.
type numberInput struct {
	args  []string
	stdin string
}

// numberCase is a recorded input with a part of the term about its number, inputs that follow its schedule, and others.
type numberCase struct {
	recorded numberInput
	term     string
	same     []numberInput
	others   []numberInput
}

// tryNumbers memoizes the recorded input of each case and tries the others.
func tryNumbers(t *testing.T, bin string, cases []numberCase) {
	t.Helper()
	for _, c := range cases {
		configured := func(in numberInput) machine.Config {
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
			if want := slices.ContainsFunc(c.same, func(s numberInput) bool { return slices.Equal(s.args, in.args) && s.stdin == in.stdin }); (why == "") != want {
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
