package output

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// TestFilterAsSed compares with sed(1), whose basic commands these rules are.
func TestFilterAsSed(t *testing.T) {
	const text = "time 1.25 s\nresult 7\n\nDEBUG x\nresult 8, took 3 ms\nno end"
	for _, x := range []struct {
		filter Filter
		sed    []string
	}{
		{Filter{{Replace: "[0-9.]+ (m?s)", With: "T $1"}}, []string{"-E", "s/[0-9.]+ (m?s)/T \\1/g"}},
		{Filter{{Delete: "^DEBUG"}}, []string{"-E", "/^DEBUG/d"}},
		{Filter{{Delete: "^$"}, {Replace: "result "}}, []string{"-E", "/^$/d; s/result //g"}},
		{Filter{{Command: []string{"sed", "s/e/E/"}}, {Delete: "E"}}, []string{"s/e/E/; /E/d"}},
		{nil, []string{""}},
	} {
		if name, found, allowed := x.filter.Wrong(); name != "" {
			t.Errorf("%s is %v, allowed %s", name, found, allowed)
		}
		cmd := exec.Command("sed", x.sed...)
		cmd.Stdin = strings.NewReader(text)
		want, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := x.filter.Apply(context.Background(), []byte(text))
		if err != nil || string(got) != string(want) {
			t.Errorf("%v: %q, %v, sed has %q", x.filter, got, err, want)
		}
	}
}

func TestWrongFilters(t *testing.T) {
	for field, f := range map[string]Filter{
		"[0]":         {{}},
		"[1]":         {{Delete: "x"}, {Delete: "x", Replace: "y"}},
		"[0].with":    {{Delete: "x", With: "y"}},
		"[0].replace": {{Replace: "("}},
		"[0].delete":  {{Delete: "["}},
	} {
		if name, _, _ := f.Wrong(); name != field {
			t.Errorf("%v: %q is wrong, want %q", f, name, field)
		}
	}
	if _, err := (Filter{{Command: []string{"false"}}}).Apply(context.Background(), nil); err == nil || !strings.Contains(err.Error(), `["false"]`) {
		t.Errorf("a command that fails: %v", err)
	}
	f := &Filtered{}
	_, _ = f.Write(make([]byte, MostFiltered))
	_, _ = f.Write([]byte{1})
	if _, err := f.Sum(context.Background(), nil); err == nil {
		t.Error("an output that is too long is filtered")
	}
}
