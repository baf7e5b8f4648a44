package job

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/sched"
)

func TestDefaultsAreAllowed(t *testing.T) {
	if err := DefaultOptions().Check(); err != nil {
		t.Error(err)
	}
}

func TestCheckNamesTheField(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"cores is 0; allowed: 1 to 64":  func(o *Options) { o.Cores = 0 },
		"cores is 65; allowed: 1 to 64": func(o *Options) { o.Cores = 65 },
		`sched.policy is "fifo"; allowed: timed, rr, random, pct, rr-sync, fcfs-sync, kendo, coredet, parrot, dthreads, consequence`: func(o *Options) { o.Sched = sched.Options{Policy: "fifo"} },
		"costs.mhz is 0; allowed: 1 to 100000":                     func(o *Options) { o.Costs.MHz = 0 },
		"costs.instruction is 0; allowed: 1 to 1000000000":         func(o *Options) { o.Costs.Instruction = 0 },
		"costs.spin_check is 1000000001; allowed: 0 to 1000000000": func(o *Options) { o.Costs.SpinCheck = 1_000_000_001 },
		"operations[1].effect is missing; allowed: acquire, release, both": func(o *Options) {
			o.Operations = []syncops.Custom{{Name: "take", Effect: "acquire"}, {Name: "give"}}
		},
		"max_memory is 1K; allowed: 16M to 1T":                                 func(o *Options) { o.MaxMemory = 1024 },
		`dir is "tmp"; allowed: an absolute path`:                              func(o *Options) { o.Dir = "tmp" },
		`env[1] is "LANG"; allowed: NAME=VALUE`:                                func(o *Options) { o.Env = []string{"A=b", "LANG"} },
		`unknown_syscalls is "ignore"; allowed: stop, enosys`:                  func(o *Options) { o.UnknownSyscalls = "ignore" },
		"sched.quantum is 2000000000000; allowed: 1 to 1000000000000":          func(o *Options) { o.Sched.Quantum = 2_000_000_000_000 },
		"sched.quantum is 2000; allowed: at most fairness (10) for the policy": func(o *Options) { o.Sched = sched.Options{Policy: "random", Fairness: 10} },
	} {
		o := DefaultOptions()
		change(&o)
		err := o.Check()
		var field *FieldError
		if !errors.As(err, &field) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestMountText(t *testing.T) {
	for text, want := range map[string]Mount{
		"data:/data":       {"data", "/data", false},
		"/a/b:/c:rw":       {"/a/b", "/c", true},
		"..:/up:ro":        {"..", "/up", false},
		"data:relative":    {},
		":/data":           {},
		"data":             {},
		"data:/data:xx":    {},
		"data:/data:rw:rw": {},
		"":                 {},
	} {
		var got Mount
		err := got.UnmarshalText([]byte(text))
		if (err == nil) != (want != Mount{}) || err == nil && got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

func TestSizeText(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "4096": 4096, "1k": 1024, "512M": 512 << 20, "4GiB": 4 << 30, "2GB": 2 << 30, "16777215T": 16777215 << 40,
	} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "M", "-1", "1.5G", "4X", "4GG", "16777216T", "99999999999999999999"} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}

func TestSizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Size(rapid.Uint64().Draw(t, "size"))
		var got Size
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Fatalf("%d reads back from %q as %d, %v", want, want, got, err)
		}
	})
}

func TestResolveAndConfig(t *testing.T) {
	o := DefaultOptions()
	o.RootFS = "root"
	o.Mounts = []Mount{{"in", "/in", false}, {"/out", "/out", true}}
	o.Env = []string{"LANG=C", "NEW=1", "LANG=de"}
	o.UnknownSyscalls = UnknownENOSYS
	o.Resolve("/base")
	c := o.Config()
	if c.RootFS != "/base/root" || c.Mounts[0].Host != "/base/in" || c.Mounts[1].Host != "/out" || !c.UnknownENOSYS {
		t.Errorf("got %+v", c)
	}
	if !slices.Contains(c.Env, "LANG=de") || slices.Contains(c.Env, "LANG=C") || !slices.Contains(c.Env, "NEW=1") {
		t.Errorf("environment is %v", c.Env)
	}
}

// TestJSONRoundTrip: options travel to worker processes as JSON.
func TestJSONRoundTrip(t *testing.T) {
	want := DefaultOptions()
	want.Mounts = []Mount{{"/out", "/out", true}}
	first, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Options
	if err := json.Unmarshal(first, &got); err != nil {
		t.Fatal(err)
	}
	if second, _ := json.Marshal(got); string(first) != string(second) || got.Mounts[0] != want.Mounts[0] {
		t.Errorf("%s\nreads back as\n%s", first, second)
	}
}
