package litmus

import (
	"os"
	"strings"
	"testing"
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

func TestErrors(t *testing.T) {
	const head, tail = "X86_64 T\n{ int x=0; }\n P0 | P1 ;\n", "\nexists (0:rax=0)\n"
	for _, c := range []struct{ text, want string }{
		{"", `f:1: found the end, expected the initial state in braces`},
		{"AArch64 T\n{}\nP0;\nnop;" + tail, `f:1: found "AArch64", expected the architecture X86_64 or X86`},
		{"X86_64\n{}\nP0;\nnop;" + tail, `f:1: found "X86_64", expected the architecture and the test's name`},
		{"X86_64 T\nwhat\n{}\nP0;\nnop;" + tail, `f:2: found "what", expected KEY=VALUE`},
		{"X86_64 T\n{ x=0;\n P0;", `f:2: found an initial state without an end, expected "}"`},
		{"X86_64 T\n(* { x=0; }\n P0;", `f:2: found a comment without an end, expected *)`},
		{"X86_64 T\n{ x==0; }\nP0;\nnop;" + tail, `f:2: found "==", expected ";"`},
		{"X86_64 T\n{ 0:xmm1=0; }\nP0;\nnop;" + tail, `f:2: found "xmm1", expected a general register other than rsp`},
		{"X86_64 T\n{ 0:rax=0;\n 0:eax=1; }\nP0;\nnop;" + tail, `f:3: 0:rax is given twice`},
		{"X86_64 T\n{ int t[2]={1,2,3}; }\nP0;\nnop;" + tail, `f:2: found "3", expected "}": the array has no more elements`},
		{head + "nop | nop | nop;" + tail, `f:4: found one more column, expected ";"`},
		{"X86_64 T\n{}\nP0|P2;\nnop;" + tail, `f:3: found "P2", expected P1`},
		{head + "nop | vmovdqu (x),%ymm0;" + tail, `f:4: the instruction "vmovdqu (x),%ymm0" is not supported in litmus tests; supported are: mov`},
		{head + "nop |\n rep stosb;" + tail, `f:5: the instruction "rep stosb" is not supported`},
		{head + "lock movl $1,(x) | nop;" + tail, `f:4: "lock movl $1,(x)" cannot have the lock prefix`},
		{head + "lock incl %eax | nop;" + tail, `f:4: "lock incl %eax" cannot have the lock prefix`},
		{head + "movl (x),(x) | nop;" + tail, `f:4: found "movl (x),(x)", expected operands that mov takes`},
		{head + "movl (x) | nop;" + tail, `f:4: found "movl (x)", expected 2 operands for mov`},
		{head + "movq %eax,(x) | nop;" + tail, `f:4: found "movq %eax,(x)", expected operands of one size`},
		{head + "movl (%xmm0),%eax | nop;" + tail, `f:4: found "xmm0", expected`},
		{head + "jmp L | nop;" + tail, `f:4: P0 has no label L`},
		{head + "nop | nop" + tail, `f:4: found the end, expected ";"`},
		{head + "nop | nop;\n", `f:4: found the end, expected exists, ~exists or forall after the code`},
		{head + "nop | nop;\nexists (2:rax=0)", `f:5: found "2", expected a thread from 0 to 1`},
		{head + "nop | nop;\nexists (z=0)", `f:5: z is no location of the test`},
		{head + "nop | nop;\nexists (x=0", `f:5: found the end, expected ")"`},
		{head + "nop | nop;\nexists x=0 x=1", `f:5: found "x", expected the end of the test, /\, \/ or =>`},
		{head + "nop | nop;\nlocations [x y]\nexists x=0", `f:5: found "y", expected ";" or "]"`},
	} {
		_, err := Parse("f", c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q gives\n%v\nwant\n%s", c.text, err, c.want)
		}
	}
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
