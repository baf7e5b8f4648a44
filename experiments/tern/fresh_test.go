package tern_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/tern"
)

// input is the input of a run: arguments, and the content of the file that one of them,
// theFile, names.
type input struct {
	args    []string
	content []byte
}

const theFile = "/input"

// bytesOf is a file's content.
type bytesOf []byte

func (b bytesOf) ReadAt(p []byte, at int64) (int, error) { return bytes.NewReader(b).ReadAt(p, at) }
func (b bytesOf) Size() int64                            { return int64(len(b)) }

// given is the input for checks.
func (in *input) given() *preconditions.Input {
	return &preconditions.Input{Args: in.args, Open: func(name string) preconditions.Content {
		if name != fmt.Sprintf("argv[%d]", slices.Index(in.args, theFile)) {
			return nil
		}
		return bytesOf(in.content)
	}}
}

// freshInputs makes inputs.
type freshInputs struct {
	recorded input
	set      *preconditions.Set
	check    *preconditions.Checker
	effort   int
	pool     *symbolic.Pool
	random   *rand.Rand
	seen     map[string]bool
	find     *tern.Finder // of a cache with the schedule
	about    []about      // by term
	// good satisfy all terms, bad violate one.
	good, bad []input
	// all is set if good are all inputs that differ from the recorded one by their last
	// number alone, with the same number of digits.
	all bool
}

func newFreshInputs(t *testing.T, recorded input, m *tern.Schedule, seed uint64) *freshInputs {
	t.Helper()
	f := &freshInputs{recorded: recorded, pool: symbolic.NewPool(), random: rand.New(rand.NewPCG(seed, 8)), seen: map[string]bool{}}
	f.seen[fmt.Sprint(recorded)] = true
	var err error
	if f.set, err = preconditions.Parse(m.File.Preconditions, f.pool); err != nil {
		t.Fatal(err)
	}
	// These inputs do not differ by variables.
	without := *f.set
	without.Env = nil
	if f.check, err = preconditions.NewChecker(&without); err != nil {
		t.Fatal(err)
	}
	f.about = termsAbout(f.set.Terms)
	f.effort = symbolic.Compile(f.set.Terms).Len() + 100
	return f
}

const (
	// greatest bounds the numbers that arguments are changed to, since they determine the
	// running time.
	greatest = 64
	// mostOperations bounds the work of checking changed inputs.
	mostOperations = 100_000_000
	// models is the number of inputs that Z3 is asked for first.
	models = 8
)

// inputs makes up to n inputs of each kind: some are Z3's models, others are changes of the
// recorded arguments and bytes; if these do not suffice, all values of the last number, the
// seed of a program's data, are tried.
func (f *freshInputs) inputs(n int) {
	if len(f.set.Derived) > 0 && !preconditions.TooCostly(f.set.Terms) {
		for range models {
			if in := f.model(); in != nil {
				f.try(in, n)
			}
		}
	}
	tries := min(max(mostOperations/f.effort, 1000), 200*n)
	for try := 0; try < tries && (len(f.good) < n || len(f.bad) < n); try++ {
		f.try(f.change(), n)
	}
	if len(f.good) < n {
		f.count(n)
	}
}

// try keeps an input that is new.
func (f *freshInputs) try(in *input, n int) {
	key := fmt.Sprint(*in)
	if f.seen[key] {
		return
	}
	f.seen[key] = true
	failed, _ := f.check.Check(in.given())
	switch {
	case failed < 0 && len(f.good) < n:
		f.good = append(f.good, *in)
	case failed >= 0 && len(f.bad) < n && f.check.Violated(in.given()) == 1:
		f.bad = append(f.bad, *in)
	}
}

// count tries numbers with the same number of digits in place of the last one, in a
// scattered order.
func (f *freshInputs) count(n int) {
	last := len(f.recorded.args) - 1
	digits := len(f.recorded.args[last])
	if _, err := strconv.Atoi(f.recorded.args[last]); err != nil || digits > 6 {
		return
	}
	numbers := 1
	for range digits {
		numbers *= 10
	}
	const stride = 7_368_787 // a prime, so that all numbers are tried
	for i := range numbers {
		if len(f.good) == n {
			return
		}
		in := input{slices.Clone(f.recorded.args), f.recorded.content}
		in.args[last] = fmt.Sprintf("%0*d", digits, i*stride%numbers)
		if failed, _ := f.check.Check(in.given()); failed < 0 {
			f.try(&in, n)
		}
	}
	f.all = true
}

// change changes one or two arguments (a number to another one, or to one with the same
// number of digits, or one byte) or the file.
func (f *freshInputs) change() *input {
	in := &input{slices.Clone(f.recorded.args), f.recorded.content}
	if in.content != nil && f.random.IntN(4) > 0 {
		f.rewrite(in)
		return in
	}
	for range 1 + f.random.IntN(2) {
		i := 1 + f.random.IntN(len(in.args)-1)
		if f.random.IntN(3) == 0 {
			i = len(in.args) - 1
		}
		n, err := strconv.Atoi(in.args[i])
		switch {
		case in.args[i] == theFile:
		case err != nil || f.random.IntN(6) == 0:
			text := []byte(in.args[i])
			text[f.random.IntN(len(text))] = byte('!' + f.random.IntN('~'-'!'))
			in.args[i] = string(text)
		case f.random.IntN(2) == 0:
			text := []byte(in.args[i])
			for k := range text {
				text[k] = byte('0' + f.random.IntN(10))
			}
			in.args[i] = string(text)
		default:
			in.args[i] = strconv.Itoa(max(0, []int{n + f.random.IntN(5) - 2, f.random.IntN(greatest), 2 * n, n / 2}[f.random.IntN(4)]))
		}
	}
	return in
}

// rewrite gives an input another file: of any size up to twice the recorded one, with few
// or many different bytes.
func (f *freshInputs) rewrite(in *input) {
	size, letters := len(in.content), 1+f.random.IntN(256)
	if f.random.IntN(2) == 0 {
		size = f.random.IntN(2*size + 1)
	}
	in.content = make([]byte, size)
	for i := range in.content {
		in.content[i] = byte(f.random.IntN(letters))
	}
}

// model returns a model of the terms, or of all but one and its negation, with numbers that
// programs can handle; nil: no arguments represent it.
func (f *freshInputs) model() *input {
	s := smt.New(200_000)
	not := f.random.IntN(2*len(f.set.Terms) + 1)
	for i, t := range f.set.Terms {
		if i == not {
			t = f.pool.Not(t)
		}
		s.Assert(t)
	}
	for _, name := range slices.Sorted(maps.Keys(f.set.Derived)) {
		d := f.set.Derived[name]
		x := f.pool.Symbol(name, d.Bits)
		s.Assert(f.pool.SLE(f.pool.Word(uint64(f.random.IntN(4)), d.Bits), x))
		if v, _ := f.value(&f.recorded, name); v.Lo <= greatest {
			s.Assert(f.pool.SLT(x, f.pool.Word(greatest, d.Bits)))
		}
	}
	if s.Check() != smt.Satisfiable {
		return nil
	}
	in := &input{slices.Clone(f.recorded.args), f.recorded.content}
	model := s.Model()
	for name, d := range f.set.Derived {
		var i int
		if _, err := fmt.Sscanf(d.Input, "argv[%d]", &i); err != nil || i >= len(in.args) {
			return nil
		}
		if v, known := model[name]; known {
			in.args[i] = strconv.Itoa(int(int32(v.Lo)))
		}
	}
	return in
}

// value returns the value of a symbol in an input, by the definition of symbols and
// independently of the Checker; false: the input lacks it.
func (f *freshInputs) value(in *input, name string) (symbolic.Value, bool) {
	var i, at int
	if d := f.set.Derived[name]; d != nil {
		if n, _ := fmt.Sscanf(d.Input, "argv[%d]", &i); n != 1 || i >= len(in.args) {
			return symbolic.Value{}, false
		}
		if x, err := strconv.ParseInt(in.args[i], 10, 31); err == nil && d.Result == "number" {
			return symbolic.Value{Lo: uint64(x)}, true
		}
		return d.Value([]byte(in.args[i])), true
	}
	byteOf := func(text []byte) (symbolic.Value, bool) {
		if at >= len(text) {
			return symbolic.Value{}, false
		}
		return symbolic.Value{Lo: uint64(text[at])}, true
	}
	if n, _ := fmt.Sscanf(name, "argv[%d][%d]", &i, &at); n == 2 && i < len(in.args) {
		return byteOf(append([]byte(in.args[i]), 0))
	}
	if n, _ := fmt.Sscanf(name, "file(argv[%d])[%d]", &i, &at); n == 2 {
		return byteOf(in.content)
	}
	n, _ := fmt.Sscanf(name, "size(argv[%d])", &i)
	return symbolic.Value{Lo: uint64(len(in.content))}, n == 1
}

// longestTerm is the size of the terms that Z3 is given.
const longestTerm = 2000

// about has the symbols of a term.
type about struct {
	symbols []string
	long    bool
}

// termsAbout computes the symbols of all terms.
func termsAbout(terms []*symbolic.Expr) []about {
	list := make([]about, len(terms))
	for i, t := range terms {
		list[i].long = t.Size() > longestTerm
		symbolic.Symbols(t, func(x *symbolic.Expr) { list[i].symbols = append(list[i].symbols, x.Name) })
	}
	return list
}

// violated counts the terms that an input violates as Z3 evaluates them. It skips terms
// that are too long for Z3.
func (f *freshInputs) violated(s *smt.Solver, in *input) (violated, skipped int) {
	known, lacking := map[string]symbolic.Value{}, map[string]bool{}
	for i, t := range f.set.Terms {
		values, lacks := map[string]symbolic.Value{}, false
		for _, name := range f.about[i].symbols {
			v, ok := known[name]
			if !ok && !lacking[name] {
				v, ok = f.value(in, name)
				known[name], lacking[name] = v, !ok
			}
			values[name], lacks = v, lacks || lacking[name]
		}
		if f.about[i].long && !lacks {
			skipped++
			continue
		}
		if lacks {
			violated++
		} else if v, ok := s.Evaluate(t, values); !ok || v.Lo == 0 {
			violated++
		}
	}
	return violated, skipped
}
