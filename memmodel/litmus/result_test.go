package litmus

import (
	"strings"
	"testing"
)

// TestLayout is herd7's result of its test A011 with counts in front of states.
func TestLayout(t *testing.T) {
	test, err := Parse("a", "X86_64 A011\n{ int y; }\nP0|P1;\nmovl $1,(y)|movl $2,%eax;\n|xchgl (y),%eax;\n~exists 1:rax=1 /\\ [y]=1\n")
	if err != nil {
		t.Fatal(err)
	}
	o := NewOutcomes(test.Observer())
	o.Add(State{1, 2}, 1)
	o.Add(State{0, 1}, 1)
	var b strings.Builder
	if err := o.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := `Test A011 Forbidden
States 2
1     :>1:rax=0; [y]=1;
1     :>1:rax=1; [y]=2;
Ok
Witnesses
Positive: 2 Negative: 0
Condition ~exists (1:rax=1 /\ [y]=1)
Observation A011 Never 0 2

`
	if b.String() != want {
		t.Errorf("printed\n%swant\n%s", b.String(), want)
	}
}

func TestExpectations(t *testing.T) {
	test, err := Parse("a", "X86_64 T\n{ int y; }\nP0;\nmovl (y),%eax;\nexists 0:rax=1 /\\ [y]=1\n")
	if err != nil {
		t.Fatal(err)
	}
	o := NewOutcomes(test.Observer())
	o.Add(State{0, 1}, 3)
	o.Add(State{1, 1}, 1)
	for _, c := range []struct{ text, want string }{
		{"Test T Allowed\nStates 2\n0:rax=0; [y]=1;\n0:rax=1; [y]=1;\nOk\nObservation T Sometimes 1 1\n", ""},
		{"Test T Allowed\nHistogram (2 states)\n", "no"},
		{"Test T Allowed\nStates 2\n17   :>y=1; 0:RAX=0;\n3 *>y=1; 0:RAX=1;\nObservation T Sometimes 1 1\n", ""},
		{
			"Test T Allowed\nStates 1\n0:rax=2; [y]=1;\nObservation T Never 0 1\n",
			"missing state: 0:rax=2 y=1\nstate that was not expected: 0:rax=0 y=1\nstate that was not expected: 0:rax=1 y=1\nobservation Sometimes, expected Never",
		},
	} {
		all, err := ParseExpectations("e", c.text)
		if c.want == "no" {
			if err == nil {
				t.Errorf("%q is taken", c.text)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(o.Differences(all[0]), "\n"); got != c.want {
			t.Errorf("%q differs by\n%s\nwant\n%s", c.text, got, c.want)
		}
	}
	for _, text := range []string{"", "States 1\n", "Test T Allowed\nStates 1\nOk\n", "Test T Allowed\nStates 2\nx=1;\n"} {
		if _, err := ParseExpectations("e", text); err == nil {
			t.Errorf("%q is taken for results", text)
		}
	}
}

// FuzzParseExpectations: any text is read or refused with its line.
func FuzzParseExpectations(f *testing.F) {
	f.Add("Test T Allowed\nStates 2\n17   :>y=1; 0:RAX=0;\n3 *>y=1; 0:RAX=1;\nObservation T Sometimes 1 1\n")
	f.Add("Test T Allowed\nHistogram (2 states)\n1 *>x=1;\n1 :>\n")
	f.Add("Test T Allowed\nStates 99999999999999999999\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseExpectations("e", text)
		if err != nil && !strings.HasPrefix(err.Error(), "e:") || err == nil && len(all) == 0 {
			t.Errorf("%d tests, %v", len(all), err)
		}
	})
}
