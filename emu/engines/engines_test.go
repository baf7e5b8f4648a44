package engines

import (
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

func TestResolve(t *testing.T) {
	best := Unicorn
	if checkDirect(arch.V2) == nil {
		best = Direct
	}
	for _, c := range []struct {
		name  string
		level arch.Level
		want  string
	}{
		{"", arch.V2, best},
		{Auto, arch.V2, best},
		{Auto, arch.V3, Direct},
		{"", arch.V3, Direct},
		{Unicorn, arch.V3, Unicorn},
		{Direct, arch.V2, Direct},
	} {
		if got := Resolve(c.name, c.level); got != c.want {
			t.Errorf("%q on %v is %s, want %s", c.name, c.level, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	if p := Check(Unicorn, arch.V2); p != nil {
		t.Error(p)
	}
	if p := Check("other", arch.V2); p == nil || p.Field != "engine" || p.Allowed != "auto, direct, unicorn" {
		t.Errorf("an unknown engine: %v", p)
	}
	if p := Check(Unicorn, arch.V3); p == nil || p.Field != "cpu" || !strings.Contains(p.Allowed, "use the engine direct") {
		t.Errorf("AVX with Unicorn: %v", p)
	}
	if on, direct := Check(Auto, arch.V3), Check(Direct, arch.V3); (on == nil) != (direct == nil) {
		t.Errorf("%v with the engine %s, %v with %s", on, Auto, direct, Direct)
	}
}
