package arch

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestCostFieldsCoverCosts requires one description for each field, under its name in YAML, and
// tags that agree.
func TestCostFieldsCoverCosts(t *testing.T) {
	typ := reflect.TypeFor[Costs]()
	fields := CostFields()
	if len(fields) != typ.NumField() {
		t.Fatalf("%d descriptions of %d costs", len(fields), typ.NumField())
	}
	for i, f := range fields {
		tag := typ.Field(i).Tag
		for _, key := range []string{"json", "yaml", "mapstructure"} {
			if tag.Get(key) != f.Name {
				t.Errorf("%s is %q in %s, want %q", typ.Field(i).Name, tag.Get(key), key, f.Name)
			}
		}
		var c Costs
		f.Set(&c, 5)
		if got := reflect.ValueOf(c).Field(i).Uint(); got != 5 || f.In(c) != 5 {
			t.Errorf("%s stands for another field", f.Name)
		}
		if f.What == "" || !strings.HasSuffix(f.Source, ".") {
			t.Errorf("%s: what it is of, and a sentence on where its default comes from, are needed", f.Name)
		}
	}
}

func TestCostsValidate(t *testing.T) {
	if err := DefaultCosts().Validate(); err != nil {
		t.Error(err)
	}
	for _, f := range CostFields() {
		for _, v := range []uint32{f.Least, f.Most} {
			c := DefaultCosts()
			f.Set(&c, v)
			if err := c.Validate(); err != nil {
				t.Error(err)
			}
		}
		c := DefaultCosts()
		f.Set(&c, math.MaxUint32)
		var wrong *CostError
		if err := c.Validate(); !errors.As(err, &wrong) || wrong.Field != f.Name || wrong.Found != math.MaxUint32 {
			t.Errorf("%s: got %v", f.Name, err)
		}
	}
}

// TestCostsAreDocumented requires each cost with its default in the document on scheduling.
func TestCostsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/scheduling.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range CostFields() {
		row := fmt.Sprintf("| `%s` | %d | %s | %s |\n", f.Name, f.Default, f.What, f.Source)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/scheduling.md lacks the line\n%s", row)
		}
	}
}
