package concolic

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// strtol(3), and its conversion to int.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "2": 2, " \t\n42x": 42, "-7": -7, "+9": 9, "0x10": 0, "--3": 0, "007": 7, "12 13": 12,
		"9223372036854775807": 1<<63 - 1, "9223372036854775808": 1<<63 - 1, "-9223372036854775808": -1 << 63, "-99999999999999999999": -1 << 63,
	} {
		wide, narrow := Derived{Summary: Summary{Result: "number", Bits: 64}}, Derived{Summary: Summary{Result: "number", Bits: 32}}
		if got := int64(wide.Value([]byte(text)).Lo); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
		if got := int32(narrow.Value([]byte(text)).Lo); got != int32(want) {
			t.Errorf("%q: %d, want %d", text, got, int32(want))
		}
	}
	for text, want := range map[string]uint64{
		"": 0, " +42x": 42, "-7": 1<<64 - 7, "18446744073709551615": 1<<64 - 1, "18446744073709551616": 1<<64 - 1,
		"-18446744073709551615": 1, "-18446744073709551616": 1<<64 - 1,
	} {
		d := Derived{Summary: Summary{Result: "unsigned", Bits: 64}}
		if got := d.Value([]byte(text)).Lo; got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	length := Derived{Summary: Summary{Result: "length", Bits: 64}}
	if got := length.Value([]byte("four")).Lo; got != 4 {
		t.Errorf("%d", got)
	}
}

func TestRange(t *testing.T) {
	for input, want := range map[string]string{
		"argv[1]": "argv[1] 0 -1", "argv[10][2:]": "argv[10] 2 -1", "stdin[3:14]": "stdin 3 14", "file(argv[2])[0:5]": "file(argv[2]) 0 5",
	} {
		name, from, to := (&Derived{Input: input}).Range()
		if got := fmt.Sprint(name, " ", from, " ", to); got != want {
			t.Errorf("%s: %s, want %s", input, got, want)
		}
	}
	for text, ends := range map[string]bool{"": false, "12": false, "12\n": true, "-": false, "x": true, " 1": false, " +1 ": true} {
		if EndsNumber([]byte(text)) != ends {
			t.Errorf("%q: %v", text, !ends)
		}
	}
}

func TestSummariesAreChecked(t *testing.T) {
	if len(DefaultSummaries()) < 10 {
		t.Error("too few summaries")
	}
	for _, c := range []struct{ text, want string }{
		{"- {function: f, result: square, bits: 32}", "known results are"},
		{"- {result: number, bits: 32}", `function ""`},
		{"- {function: f, result: number, bits: 31}", "bits: 31"},
		{"- {function: f, result: none, colour: 3}", "colour"},
		{"- {function: f, result: find, bits: 64, size: 7}", "size: 7"},
	} {
		if _, err := ReadSummaries(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

// strtod(3) and strtof(3), compared with the host's C library.
func TestReals(t *testing.T) {
	texts := []string{
		"", "2", " \t\n42x", "-7.5", "+.5e3", ".", "1e", "1e+", "0x", "0x1.8", "0X.8p3z", "0x1p", "-0", "inf", "-Infinityx", "infin", "nan", "-nanx",
		"1e400", "-1e400", "1e-400", "4.9e-324", "2.4e-324", "3.4028236e38", "1e-46", "1.00000005960464477539062500001", "179769313486231580793728971405301e276",
		"--3", "0.1", "5.", "1_000", "0x1_0", "12345678901234567890123",
	}
	r := rand.New(rand.NewPCG(41, 42))
	for range 300 {
		texts = append(texts, fmt.Sprintf("%s%d.%de%d", []string{"", "-"}[r.IntN(2)], r.Uint64()>>r.IntN(64), r.Uint64()>>r.IntN(64), r.IntN(640)-320))
	}
	bin := gcctest.C(t, `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++) {
		double d = strtod(argv[i], 0);
		float f = strtof(argv[i], 0);
		unsigned long wide;
		unsigned narrow;
		memcpy(&wide, &d, 8);
		memcpy(&narrow, &f, 4);
		printf("%lx %x\n", wide, narrow);
	}
}`)
	out, err := exec.Command(bin, texts...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if got := fmt.Sprintf("%x %x", parseReal([]byte(texts[i]), 64), parseReal([]byte(texts[i]), 32)); got != line {
			t.Errorf("%q: %s, the C library has %s", texts[i], got, line)
		}
	}
}
