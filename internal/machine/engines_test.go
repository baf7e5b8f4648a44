package machine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/sched"
)

// furtherPrograms are programs of Debian besides those of agreeing.
var furtherPrograms = map[string][]string{
	"bzip2":     {"bzip2", "-c", "-k", "DATA"},
	"lbzip2":    {"lbzip2", "-c", "-k", "-n", "3", "DATA"},
	"plzip":     {"plzip", "-c", "-k", "-n", "2", "-1", "DATA"},
	"gzip":      {"sh", "-c", "gzip -c DATA | gzip -dc | cmp - DATA && gzip -9c DATA | wc -c"},
	"sha512sum": {"sha512sum", "DATA"},
	"sed":       {"sed", "-E", `s/line ([0-9]+) (of) /\2 \1 /; /7$/d`, "DATA"},
	"grep":      {"grep", "-nE", "(1|22|3[0-9])+ of .*[05]$", "DATA"},
	"find":      {"find", "/usr/include/asm-generic", "-name", "*.h", "-size", "+1k", "-printf", `%s %f\n`},
	"make":      {"sh", "-c", `printf 'all: a b\n\t@echo done\na b:\n\t@echo $@; sleep 0.01\n' | make -j2 -f -`},
	"printf":    {"printf", `%.19Lf %e %g\n`, "0.1", "12345678.9", "1e-300"},
	"tr":        {"sh", "-c", "tr a-z A-Z < DATA | cut -d' ' -f2 | sort -n | uniq -c | tail -3"},
	"strace":    {"strace", "-f", "-c", "-U", "calls,name", "-S", "name", "sh", "-c", "true; echo x | cat"},
}

// environment prints images of the x87 state.
const environment = `
#include <stdio.h>
static unsigned char image[512] __attribute__((aligned(16)));
static void show(void) { for (int i = 0; i < 160; i++) printf("%02x", image[i]); puts(""); }
int main(void) {
	__asm__ volatile("fninit; fldz; fld1; fnstenv %0" : "=m"(image)); show();
	__asm__ volatile("fninit; fldpi; .byte 0x66; fnstenv %0" : "=m"(image)); show();
	__asm__ volatile("fninit; fldl2e; fld1; fnsave %0" : "=m"(image)); show();
	__asm__ volatile("fninit; fldz; fld1; fdivp; fxsave %0" : "=m"(image)); show();
	return 0;
}`

// TestEnginesAgree: equal runs have equal digests on both engines, for programs of several
// run-times and for the policies and memory models that divide runs differently.
func TestEnginesAgree(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	var text strings.Builder
	for i := range testsize.Pick(500, 2000, 20000) {
		fmt.Fprintf(&text, "line %d of %d\n", i*i%977, i)
	}
	if err := os.WriteFile(data, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	config := func(args ...string) machine.Config {
		c := machine.DefaultConfig()
		for _, a := range args {
			c.Args = append(c.Args, strings.ReplaceAll(a, "DATA", data))
		}
		return c
	}
	for _, programs := range []map[string][]string{agreeing(t), furtherPrograms} {
		for name, args := range programs {
			t.Run(name, func(t *testing.T) { machinetest.ExpectEqualRuns(t, config(args...)) })
		}
	}
	t.Run("environment", func(t *testing.T) { machinetest.ExpectEqualRuns(t, config(machinetest.Compile(t, environment, "-O1"))) })
	racy := machinetest.Compile(t, machinetest.Racy, "-pthread")
	for _, o := range []sched.Options{
		{Policy: sched.Random},
		{Policy: sched.Random, Granularity: sched.Instruction},
		{Policy: "pct"},
		{Policy: "rr"},
		{Policy: "rr-sync"},
		{Policy: "fcfs-sync"},
		{Policy: "kendo"},
		{Policy: "coredet"},
		{Policy: "parrot"},
		{Policy: "dthreads"},
		{Policy: "consequence"},
	} {
		t.Run(o.Policy+" "+o.Granularity, func(t *testing.T) {
			c := config(racy)
			c.Sched = o
			machinetest.ExpectEqualRuns(t, c)
		})
	}
	for _, o := range []storebuffer.Options{{Model: "tso"}, {Model: "pso"}, {Model: "tso", Engine: storebuffer.Pages}} {
		t.Run(o.Model+" "+o.Engine, func(t *testing.T) {
			c := config(racy)
			c.Memory = o
			machinetest.ExpectEqualRuns(t, c)
		})
	}
}

// onEngines runs a test on each engine.
func onEngines(t *testing.T, test func(t *testing.T, engine string)) {
	for _, engine := range []string{engines.Direct, engines.Unicorn} {
		t.Run(engine, func(t *testing.T) { test(t, engine) })
	}
}
