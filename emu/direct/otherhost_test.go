package direct

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// insideOtherHost is set in a test process that runs on another processor than the host's.
const insideOtherHost = "HEDDLE_TEST_OTHER_HOST"

// integerForms are the forms of list that QEMU executes as a processor does, of general registers alone.
func integerForms(list []form) (integer []form) {
	for _, f := range list {
		wide := f.table == 1 && (f.opcode&^15 == 0x40 || f.opcode&^31 == 0x80 || f.opcode == 0xaf || f.opcode >= 0xb6 && f.opcode != 0xb9 && f.opcode <= 0xbf || f.opcode == 0xc0 || f.opcode == 0xc1)
		rotation := f.opcode&^1 == 0xc0 || f.opcode&^3 == 0xd0
		if f.table == 0 && f.opcode < 0xd8 && !rotation || wide {
			integer = append(integer, f)
		}
	}
	return integer
}

// TestProcessorWithoutAVX runs random programs on a processor without AVX, BMI, LZCNT, MOVBE and XSAVE, which raises #UD
// at a host instruction of them, be it in translated code or in the engine: a Nehalem, as QEMU emulates it for one process.
// Blocks and steps agree there, and programs of general registers have the results that they have on the host's.
func TestProcessorWithoutAVX(t *testing.T) {
	testsize.SkipQuick(t)
	qemu, err := exec.LookPath("qemu-x86_64")
	if err != nil {
		t.Skip("the host has no qemu-x86_64")
	}
	inside := os.Getenv(insideOtherHost) != ""
	if inside {
		mapCodeOnce()
		if HostHas(arch.V3) {
			t.Fatal("the processor has all of level v3")
		}
	}
	all := programForms(arch.V2)
	// QEMU checks no alignment.
	all = slices.DeleteFunc(all, func(f form) bool {
		code := append(f.head(0, 0, 0, 0), 3|byte(max(f.field, 0))<<3, 0, 0, 0, 0, 0, 0, 0, 0)
		return f.memory && Inspect(arch.V2, code, oracleCode).aligned
	})
	result := fmt.Sprintf("hash %#x\n", agreeWithSteps(t, arch.V2, straight(integerForms(all), arch.V2), testsize.Runs(300, 300, 20_000), 1000))
	if inside {
		agreeWithSteps(t, arch.V2, straight(all, arch.V2), testsize.Runs(300, 300, 20_000), 1000)
		fmt.Print(result)
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), qemu, "-cpu", "Nehalem", program, "-test.run", "^TestProcessorWithoutAVX$", "-test.v")
	cmd.Env = append(os.Environ(), insideOtherHost+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), result) {
		t.Errorf("want %s, got %v\n%s", result, err, out)
	}
}
