package litmus

import (
	"os"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/casefile"
)

const sample = `X86_64 MP+mfence+po
"a comment (* not one *)"
Cycle=Rfe PodRR Fre MFencedWW
(* a comment
   (* with another *) *)
{
 int x=0; uint64_t y;
 int64_t t[2]={1,-1};
 int64_t* p = t;
 0:rax=t; int64_t 0:rcx; 1:rdx=y;
}
 P0                       | P1                 ;
 movl $1,(x)              | movq (y),%rax      ;
 mfence                   | L: cmp $1,%rax     ;
 movq $1,(%rdx)           | jne E              ;
 movq 8(%rax,%ebx,8),%rcx | movzbl (x),%ebx    ;
 lock; xaddl %r8d,(x)     | E:                 ;
locations [x; t; 1:rbx;]
filter (1:rax=1)
exists (1:rax=1 /\ not (1:rbx=1 \/ [x]!=0) => 0:rcx=-1 /\ p=t)
`

func TestParse(t *testing.T) {
	test, err := Parse("mp.litmus", sample)
	if err != nil {
		t.Fatal(err)
	}
	if test.Name != "MP+mfence+po" || len(test.Threads) != 2 || len(test.Vars) != 4 || test.Meta[0].Key != "Cycle" {
		t.Errorf("parsed %+v", test)
	}
	code := test.Threads[0].Code
	if last := code[len(code)-1]; last.Op != "xadd" || !last.Lock || last.Size != 4 || last.Src.Reg != 8 || last.Dst.Sym != "x" {
		t.Errorf("lock; xaddl %%r8d,(x) is %+v", last)
	}
	if in := code[3]; in.Src.Reg != 0 || in.Src.Index != 3 || in.Src.Scale != 8 || in.Src.Imm != 8 || in.Size != 8 {
		t.Errorf("movq 8(%%rax,%%ebx,8),%%rcx is %+v", in)
	}
	if in := test.Threads[1].Code[2]; in.Cond != "ne" || in.Target != 4 {
		t.Errorf("jne E is %+v", in)
	}
	memory := test.Memory()
	if at := test.Var("t").Addr - DataBase; getLE(memory[at:at+8]) != 1 || getLE(memory[at+8:at+16]) != 1<<64-1 {
		t.Errorf("the array is % x", memory[at:at+16])
	}
	if at := test.Var("p").Addr - DataBase; getLE(memory[at:at+8]) != test.Var("t").Addr {
		t.Errorf("p does not point to t")
	}
	want := `exists (1:rax=1 /\ not (1:rbx=1 \/ [x]!=0) => 0:rcx=-1 /\ [p]=t)`
	if got := test.Condition(); got != want {
		t.Errorf("condition %s, want %s", got, want)
	}
}

// TestPrint: printing and parsing again gives the same text.
func TestPrint(t *testing.T) {
	classics, err := os.ReadFile("../testdata/classic.txt")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{sample}
	for _, block := range strings.Split(string(classics), "\n== ")[1:] {
		_, text, _ := strings.Cut(block, "\n")
		texts = append(texts, text)
	}
	for _, text := range texts {
		first, err := Parse("a", text)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Parse("b", first.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		if second.String() != first.String() {
			t.Errorf("printed\n%s\nand after parsing that\n%s", first, second)
		}
		codes, err := Assemble([]*Test{first, second})
		if err != nil {
			t.Fatal(err)
		}
		for i := range codes[0] {
			if string(codes[0][i].Bytes) != string(codes[1][i].Bytes) {
				t.Errorf("%s: thread %d has other code after printing and parsing", first.Name, i)
			}
		}
	}
}

func TestOperandNotations(t *testing.T) {
	for _, c := range []struct{ att, intel string }{
		{"movl $1,(x)", "MOV [x],$1"},
		{"movl $1,x", "mov dword ptr [x], 1"},
		{"movl $1,x(%rip)", "mov [x], 1"},
		{"movl (x),%eax", "mov eax,[x]"},
		{"movb %al,(x+1)", "mov byte ptr [x+1], al"},
		{"movq 4(%rdi),%r9", "mov r9,[rdi+4]"},
		{"movw -2(%rsi,%rcx,2),%bx", "mov bx,[rsi+rcx*2-2]"},
		{"movzbl (x),%edx", "movzx edx, byte ptr [x]"},
		{"movslq (x),%rdx", "movsx rdx, dword ptr [x]"},
		{"xchgl %eax,(x)", "xchg [x],eax"},
		{"lock cmpxchgl %ecx,(x)", "lock cmpxchg [x],ecx"},
		{"leaq (x),%rax", "lea rax,[x]"},
		{"cmpl $1,%eax", "cmp eax,1"},
		{"sete %al", "setz al"},
		{"cmovnel (x),%eax", "cmovnz eax,[x]"},
		{"negq %rax", "neg rax"},
		{"movnti %rax,(x)", "movnti [x],rax"},
	} {
		var codes [2]string
		for i, in := range []string{c.att, c.intel} {
			test, err := Parse("a", "X86_64 T\n{}\nP0;\n"+in+";\nnop;\nexists true\n")
			if err != nil {
				// movslq and the like need four bytes as the default for x
				t.Fatalf("%s: %v", in, err)
			}
			code, err := Assemble([]*Test{test})
			if err != nil {
				t.Fatalf("%s: %v", in, err)
			}
			codes[i] = string(code[0][0].Bytes)
		}
		if codes[0] != codes[1] {
			t.Errorf("%s gives % x, %s gives % x", c.att, codes[0], c.intel, codes[1])
		}
	}
}

// TestTexts: the tests of testdata/tests.txt are read as it says.
func TestTexts(t *testing.T) {
	for _, c := range texts(t) {
		test, err := Parse("f", c.Input)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = strings.TrimSpace(test.String())
		}
		if got != c.Want {
			t.Errorf("%s gives\n%s\nwant\n%s", c.Name, got, c.Want)
		}
	}
}

// texts are litmus tests, and how they are printed or the errors.
func texts(t testing.TB) []casefile.Case {
	t.Helper()
	return casefile.Read(t, "testdata/tests.txt")
}

func TestAssemblerErrorsNameTheLine(t *testing.T) {
	test, err := Parse("f", "X86_64 T\n{}\nP0;\n nop;\n movq $0x123456789abcdef,(x);\nexists true")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Assemble([]*Test{test})
	if err == nil || !strings.HasPrefix(err.Error(), `f:5: the assembler refuses "movq $0x123456789abcdef,(x)": `) {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	for _, c := range texts(f) {
		f.Add(c.Input)
	}
	f.Add("X86 T\n{ x=0; }\nP0|P1;\nMOV [x],$1|MOV EAX,[x];\nlocations [x]\n~exists (1:EAX=0)\n")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := Parse("f", text)
		if err != nil {
			return
		}
		printed := first.String()
		second, err := Parse("f", printed)
		if err != nil {
			t.Fatalf("printed as\n%s\nwhich gives %v", printed, err)
		}
		if again := second.String(); again != printed {
			t.Fatalf("printed as\n%s\nthen as\n%s", printed, again)
		}
	})
}
