package yamlfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/viper"
)

type sample struct {
	Name    string              `mapstructure:"name"`
	Count   int                 `mapstructure:"count"`
	Seed    uint64              `mapstructure:"seed"`
	Rate    *float64            `mapstructure:"rate"`
	On      bool                `mapstructure:"on"`
	List    []string            `mapstructure:"list"`
	Spans   []span              `mapstructure:"spans"`
	Inner   inner               `mapstructure:"inner"`
	Many    []inner             `mapstructure:"many"`
	Extra   map[string][]string `mapstructure:"extra"`
	Derived int                 `mapstructure:"-"`
}

type inner struct {
	Depth int     `mapstructure:"depth" positive:"true"`
	Share float64 `mapstructure:"share" positive:"true"`
}

type span struct{ low, high int }

func (s *span) UnmarshalText(text []byte) error {
	if _, err := fmt.Sscanf(string(text), "%d-%d", &s.low, &s.high); err != nil {
		return fmt.Errorf("a range like 1-10")
	}
	return nil
}

func TestParseFillsEveryKind(t *testing.T) {
	got := sample{Count: 7, Derived: 3}
	_, err := Parse("a.yaml", []byte(`
name: demo
seed: 18446744073709551615
rate: 0.5
on: true
list: single
spans: [1-3, 5-9]
inner: &i {depth: 2}
many: [*i, {depth: 4, share: 0.5}]
extra: {level: [1, 9]}
`), &got)
	if err != nil {
		t.Fatal(err)
	}
	want := "{demo 7 18446744073709551615 0.5 true [single] [{1 3} {5 9}] {2 0} [{2 0} {4 0.5}] map[level:[1 9]] 3}"
	rate := *got.Rate
	got.Rate = nil
	text := strings.Replace(fmt.Sprint(got), "<nil>", fmt.Sprint(rate), 1)
	if text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestEmptyFilesKeepDefaults(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n", "---\n", "inner:\n"} {
		got := sample{Count: 7}
		if _, err := Parse("a.yaml", []byte(text), &got); err != nil || got.Count != 7 {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestErrorsNameFileLineFieldFoundAndAllowed(t *testing.T) {
	all := "name, count, seed, rate, on, list, spans, inner, many, extra"
	for text, want := range map[string]string{
		"name: a\ncoutn: 3\n":             "a.yaml:2: unknown field coutn; allowed here: " + all,
		"Name: a\n":                       "a.yaml:1: unknown field Name; allowed here: " + all,
		"inner:\n  depht: 1\n":            "a.yaml:2: unknown field inner.depht; allowed here: depth, share",
		"many:\n- depth: 1\n- deep: 1\n":  "a.yaml:3: unknown field many[1].deep; allowed here: depth, share",
		"count: 1\nname: a\ncount: 2\n":   "a.yaml:3: not valid YAML: mapping key \"count\" already defined at line 1",
		"\ncount: many\n":                 `a.yaml:2: count is "many"; allowed: a whole number`,
		"count: 1.5\n":                    `a.yaml:1: count is "1.5"; allowed: a whole number`,
		"seed: -1\n":                      `a.yaml:1: seed is "-1"; allowed: a whole number, not negative`,
		"rate: fast\n":                    `a.yaml:1: rate is "fast"; allowed: a number`,
		"on: 3\n":                         `a.yaml:1: on is "3"; allowed: true or false`,
		"name: [a]\n":                     "a.yaml:1: name is a list; allowed: a single value",
		"inner: 3\n":                      `a.yaml:1: inner is "3"; allowed: a mapping of fields`,
		"inner:\n  depth: 0\n":            "a.yaml:2: inner.depth is 0; allowed: a whole number from 1 on",
		"many: [{share: 0.0}]\n":          "a.yaml:1: many[0].share is 0.0; allowed: a number above 0",
		"list: {a: 1}\n":                  "a.yaml:1: list is a mapping; allowed: a list",
		"list: [a,\n  ]\nspans: [1-2, x]": `a.yaml:3: spans[1] is "x"; allowed: a range like 1-10`,
		"list:\n- a\n-\n":                 "a.yaml:3: list[1] is empty; allowed: a value",
		"extra: {Level: [1]}\n":           `a.yaml:1: the name of extra.Level is "Level"; allowed: lower-case words without dots, brackets and spaces`,
		"- a\n":                           "a.yaml:1: the file is a list; allowed: a mapping of fields",
		"name: a\n---\nname: b\n":         "a.yaml:2: the file is more than one document; allowed: a single document",
		"inner:\n  <<: {deep: 1}\n":       "a.yaml:2: unknown field inner.deep; allowed here: depth, share",
		"name: 'a\n":                      "a.yaml:2: not valid YAML: found unexpected end of stream",
		"name: a\n\tcount: 3\n":           "a.yaml:2: not valid YAML: found a tab character that violates indentation",
		"many: &m\n- *m\n":                "a.yaml:1: not valid YAML: anchor 'm' value contains itself",
	} {
		var got sample
		_, err := Parse("a.yaml", []byte(text), &got)
		if err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestWrongFindsTheLine(t *testing.T) {
	f, err := Parse("a.yaml", []byte("name: a\nmany:\n- depth: 1\n- depth: 99\n"), &sample{})
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"many[1].depth": "a.yaml:4: many[1].depth is 99; allowed: 1 to 10",
		"many[1].other": "a.yaml:4: many[1].other is 99; allowed: 1 to 10",
		"many[7]":       "a.yaml:3: many[7] is 99; allowed: 1 to 10",
		"inner.depth":   "a.yaml:1: inner.depth is 99; allowed: 1 to 10",
	} {
		if got := f.Wrong(field, 99, "1 to 10").Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestOverrides(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte("count: 3\ninner: {depth: 4}\nlist: [a, b]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := sample{Seed: 5}
	_, err := LoadBound(path, &got, func(v *viper.Viper) {
		v.Set("inner.depth", "9")
		v.Set("spans", []string{"1-2"})
	})
	if err != nil || got.Count != 3 || got.Inner.Depth != 9 || got.Seed != 5 || len(got.Spans) != 1 || len(got.List) != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestMissingFile(t *testing.T) {
	_, err := Load("no/such.yaml", &sample{})
	if want := "cannot read the configuration file no/such.yaml: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"name: a\ninner: {depth: 1}\n", "- a\n", "a: &a\n- *a\n", "<<: {}\n", "many: [{<<: [x]}]", "\xff", "? [a]\n: b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got sample
		if _, err := Parse("a.yaml", data, &got); err != nil && !strings.Contains(err.Error(), "a.yaml:") {
			t.Errorf("%q: the error names no place: %v", data, err)
		}
	})
}
