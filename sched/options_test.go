package sched_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/sched"
	. "github.com/heddle-dmt/heddle/sched/schedtest"
)

func TestZeroOptionsAreValid(t *testing.T) {
	if err := (sched.Options{}).Validate(); err != nil {
		t.Error(err)
	}
	if got := (sched.Options{}).WithDefaults().Policy; got != sched.PolicyNames()[0] {
		t.Errorf("default policy %q, the first name is %q", got, sched.PolicyNames()[0])
	}
	for _, policy := range sched.PolicyNames() {
		for _, granularity := range sched.Granularities() {
			o := sched.Options{Policy: policy, Granularity: granularity}
			if err := o.Validate(); err != nil {
				t.Errorf("%s, %s: %v", policy, granularity, err)
			}
			if o = o.WithDefaults(); o.Quantum == 0 || o.TimeSlice == 0 || *o.Jitter == 0 || o.Fairness == 0 {
				t.Errorf("%s, %s: incomplete defaults %+v", policy, granularity, o)
			}
		}
	}
}

func TestDefaultsKeepWhatIsGiven(t *testing.T) {
	o := sched.Options{Policy: sched.PCT, Quantum: 1, Jitter: Fraction(0), Depth: 9, Fairness: 77}
	got := o.WithDefaults()
	if got.Policy != sched.PCT || got.Quantum != 1 || *got.Jitter != 0 || got.Depth != 9 || got.Fairness != 77 {
		t.Errorf("%+v became %+v", o, got)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for _, test := range []struct {
		o    sched.Options
		want string
	}{
		{sched.Options{Policy: "fifo"}, `scheduling option policy is "fifo"; allowed: timed, rr, random, pct, rr-sync, fcfs-sync, kendo, coredet, parrot, dthreads, consequence`},
		{sched.Options{Granularity: "page"}, `scheduling option granularity is "page"; allowed: block, sync, instruction`},
		{sched.Options{Quantum: 1e13}, "scheduling option quantum is 10000000000000; allowed: 1 to 1000000000000"},
		{sched.Options{TimeSlice: 1e13}, "scheduling option time_slice is 10000000000000; allowed: 1 to 1000000000000"},
		{sched.Options{Jitter: Fraction(1.5)}, "scheduling option jitter is 1.5; allowed: 0 to 1"},
		{sched.Options{Jitter: Fraction(math.NaN())}, "scheduling option jitter is NaN; allowed: 0 to 1"},
		{sched.Options{DelayRate: -0.5}, "scheduling option delay_rate is -0.5; allowed: 0 to 1"},
		{sched.Options{DelayCycles: 1e13}, "scheduling option delay_cycles is 10000000000000; allowed: 1 to 1000000000000"},
		{sched.Options{Depth: -1}, "scheduling option depth is -1; allowed: 1 to 1000"},
		{sched.Options{Depth: 5, Length: 4}, "scheduling option length is 4; allowed: 5 to 1000000000000"},
		{sched.Options{Fairness: 1e13}, "scheduling option fairness is 10000000000000; allowed: 1 to 1000000000000"},
		{
			sched.Options{Policy: sched.Random, Quantum: 10, Fairness: 9},
			"scheduling option quantum is 10; allowed: at most fairness (9) for the policy random",
		},
	} {
		err := test.o.Validate()
		var field *sched.FieldError
		if !errors.As(err, &field) || err.Error() != test.want {
			t.Errorf("%+v: got %v, want %s", test.o, err, test.want)
		}
		if _, err := sched.New(1, 0, test.o); err == nil {
			t.Errorf("New takes %+v", test.o)
		}
	}
}

func TestNewChecksCores(t *testing.T) {
	for cores, ok := range map[int]bool{-1: false, 0: false, 1: true, 64: true, 65: false} {
		if c, err := sched.New(cores, 0, sched.Options{}); (err == nil) != ok {
			t.Errorf("%d cores: %v", cores, err)
		} else if ok && c.Cores() != cores {
			t.Errorf("%d cores became %d", cores, c.Cores())
		}
	}
}

// A summary or a run file distinguishes jitter 0 from jitter by default.
func TestJitterInJSON(t *testing.T) {
	for _, jitter := range []*float64{nil, Fraction(0), Fraction(0.25)} {
		text, err := json.Marshal(sched.Options{Jitter: jitter})
		if err != nil {
			t.Fatal(err)
		}
		var back sched.Options
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if (back.Jitter == nil) != (jitter == nil) || jitter != nil && *back.Jitter != *jitter {
			t.Errorf("%s lost its jitter", text)
		}
	}
}

// Schedules of program.yaml are flags of heddle run.
func TestParseWords(t *testing.T) {
	words := strings.Fields("--sched pct --depth 4 --length 9000 --quantum 7 --delay-rate 0.5 --delay-cycles 3 " +
		"--time-slice 8 --jitter 0 --fairness 11 --granularity sync")
	want := sched.Options{
		Policy: sched.PCT, Depth: 4, Length: 9000, Quantum: 7, DelayRate: 0.5, DelayCycles: 3, TimeSlice: 8,
		Jitter: Fraction(0), Fairness: 11, Granularity: sched.Sync,
	}
	if got, err := sched.ParseFlagWords(words); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for words, want := range map[string]string{
		"--sched":        `scheduling option "--sched" is alone; allowed: pairs of a flag and its value`,
		"timed --sched":  `scheduling option "timed" is alone; allowed: pairs of a flag and its value`,
		"--speed 3":      `scheduling option speed is "3"; allowed: the fields of Options`,
		"--quantum many": `scheduling option quantum is "many"; allowed: a number`,
		"--sched fifo":   `scheduling option policy is "fifo"; allowed: timed, rr, random, pct, rr-sync, fcfs-sync, kendo, coredet, parrot, dthreads, consequence`,
	} {
		if _, err := sched.ParseFlagWords(strings.Fields(words)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", words, err, want)
		}
	}
}
