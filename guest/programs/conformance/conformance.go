// Package conformance holds small C programs that exercise the promises of Linux and
// glibc to threaded programs: pthreads and C11 threads, futexes,
// signals, memory, files, pipes, sockets, clocks, processes, thread-local
// storage and the corners of the instruction set.
//
// The real kernel is the oracle. A program prints results and errno names,
// never addresses, ids or times, so that its output is the same on every run
// of every correct Linux, whatever the number of cores and the interleaving;
// it checks by itself the results that it cannot print, and exits with status 1 when a
// check fails. A difference between a native run and one on the emulated
// machine is therefore a fault of the machine.
//
// The sources are in the folder src, one file each, compiled when they are
// needed ([Program.Build]). The comment at the top of a file describes it:
//
//	// The subject of the program, in one line.
//	// link: -lm -ldl          further arguments for the linker
//	// static: no (reason)     the program exists only as a dynamic one
//	// engine: no (reason)     the emulation engine cannot run it as a processor
//	//                         does; it is skipped there and listed
//	// native: no (reason)     the host's kernel must not be asked, as for setting its
//	//                         clock; the program checks its output by itself
//	// root: yes               the program needs root's rights
//	// cpu: x86-64-v3          the level of the processor that the program needs, for
//	//                         which it is compiled and optimized
//	// breakpoints: yes        the program needs a processor that stops at hardware
//	//                         breakpoints; src/NAME.out is its output on one, and
//	//                         stands for the native run on a host without
//	// plugin: yes             the source, compiled with -DPLUGIN, is also a
//	//                         shared library that must be ./plugin.so
//	// exit: 3                 expected exit status, 0 unless given
//	// signal: SIGABRT         the signal that the program dies by
//
// The package only describes and builds programs; it runs nothing.
package conformance

import (
	"embed"
	"fmt"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

//go:embed src
var sources embed.FS

// Program is one C program, as the comment at the top of its source says.
type Program struct {
	// Name is the name of the source file without its ".c".
	Name string
	// About is the subject of the program, in one line.
	About string
	// Link holds further arguments for the linker.
	Link []string
	// NativeOnly says why the program is not run on the emulation engine; it is
	// empty for nearly all, which are run on it.
	NativeOnly string
	// EngineOnly says why the program is not run natively; its output is then only
	// the same on all machines.
	EngineOnly string
	// Root reports whether the program needs root's rights: natively it runs only when
	// the tests do as root.
	Root bool
	// CPU is the level of the processor that the program needs.
	CPU arch.Level
	// Breakpoints reports whether the program needs a processor that stops at hardware
	// breakpoints. Recorded then returns its output on one.
	Breakpoints bool
	// DynamicOnly says why the program cannot be linked statically; it is
	// empty for programs that can.
	DynamicOnly string
	// Plugin reports whether the program loads ./plugin.so from its working
	// directory; BuildPlugin makes that file.
	Plugin bool
	// Exit is the expected exit status.
	Exit int
	// Signal is the signal that the program is expected to die by, or 0.
	Signal unix.Signal
}

// Programs returns all programs in the order of their names.
func Programs() []Program {
	entries, err := sources.ReadDir("src")
	if err != nil {
		panic("bug: embedded sources: " + err.Error())
	}
	var all []Program
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".c")
		if !ok {
			continue
		}
		text, err := sources.ReadFile(path.Join("src", e.Name()))
		if err != nil {
			panic("bug: embedded sources: " + err.Error())
		}
		p, err := parse(name, string(text))
		if err != nil {
			panic("bug: " + err.Error())
		}
		all = append(all, p)
	}
	return all
}

// Recorded is the standard output of a native run on a processor that stops at hardware
// breakpoints, for a program that needs one.
func (p Program) Recorded() string {
	text, err := sources.ReadFile(path.Join("src", p.Name+".out"))
	if err != nil {
		panic("bug: embedded sources: " + err.Error())
	}
	return string(text)
}

// parse reads the comment at the top of a source file.
func parse(name, text string) (Program, error) {
	p := Program{Name: name}
	for i, line := range strings.Split(text, "\n") {
		comment, ok := strings.CutPrefix(line, "// ")
		if !ok {
			break
		}
		if i == 0 {
			p.About = comment
			continue
		}
		key, value, ok := strings.Cut(comment, ": ")
		if !ok {
			return p, fmt.Errorf("%s.c:%d: %q is not \"key: value\"", name, i+1, comment)
		}
		if err := p.set(key, strings.TrimSpace(value)); err != nil {
			return p, fmt.Errorf("%s.c:%d: %w", name, i+1, err)
		}
	}
	if p.About == "" {
		return p, fmt.Errorf("%s.c:1: the first line must say what the program exercises", name)
	}
	return p, nil
}

func (p *Program) set(key, value string) (err error) {
	switch key {
	case "link":
		p.Link = strings.Fields(value)
	case "static":
		if p.DynamicOnly, err = refusal(value); err != nil {
			return fmt.Errorf("static: %w", err)
		}
	case "engine":
		if p.NativeOnly, err = refusal(value); err != nil {
			return fmt.Errorf("engine: %w", err)
		}
	case "native":
		if p.EngineOnly, err = refusal(value); err != nil {
			return fmt.Errorf("native: %w", err)
		}
	case "root":
		if value != "yes" {
			return fmt.Errorf("root: got %q, want \"yes\"", value)
		}
		p.Root = true
	case "cpu":
		var known bool
		if p.CPU, known = arch.ParseLevel(value); !known {
			return fmt.Errorf("cpu: got %q, want one of %s", value, strings.Join(arch.Levels(), ", "))
		}
	case "breakpoints":
		if value != "yes" {
			return fmt.Errorf("breakpoints: got %q, want \"yes\"", value)
		}
		p.Breakpoints = true
	case "plugin":
		if value != "yes" {
			return fmt.Errorf("plugin: got %q, want \"yes\"", value)
		}
		p.Plugin = true
	case "exit":
		if p.Exit, err = strconv.Atoi(value); err != nil || p.Exit < 0 || p.Exit > 255 {
			return fmt.Errorf("exit: got %q, want 0 to 255", value)
		}
	case "signal":
		if p.Signal = unix.SignalNum(value); p.Signal == 0 {
			return fmt.Errorf("signal: got %q, want a name such as SIGABRT", value)
		}
	default:
		return fmt.Errorf("unknown key %q, want link, static, engine, native, root, cpu, breakpoints, plugin, exit or signal", key)
	}
	return nil
}

// refusal is the reason in "no (reason)".
func refusal(value string) (string, error) {
	reason, ok := strings.CutPrefix(value, "no (")
	reason, closed := strings.CutSuffix(reason, ")")
	if !ok || !closed || reason == "" {
		return "", fmt.Errorf("got %q, want \"no (reason)\"", value)
	}
	return reason, nil
}
