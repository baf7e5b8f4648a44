// Package settings has the options of windows of requests, in experiment files and on command lines: the rules of the server's tasks,
// and the sizes. It runs nothing (package windows does).
package settings

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/recorder/region"
	"github.com/heddle-dmt/heddle/sched/windows"
)

var errRules = errs.Define("unknown-task-rules",
	"there are no rules for tasks of the name {name}, and no file of that name; there are rules for {servers}",
	"The value of --tasks is neither a file of rules nor one of the servers for which heddle has rules.",
	"Name one of them, or write a file of rules as docs/windows.md says.")

// Rules say which processes are the server, and when its tasks begin and end.
type Rules struct {
	// Programs are the server's programs, by the last component of their paths. Their processes
	// and the children of these are the server.
	Programs []string `yaml:"programs" mapstructure:"programs" json:"programs"`
	// Ports are the listening ports whose connections have tasks; empty: all.
	Ports []uint16 `yaml:"ports" mapstructure:"ports" json:"ports,omitempty"`
	// Begin is "read" (the default) or "accept", and End "reply" (the default) or "close".
	Begin string `yaml:"begin" mapstructure:"begin" json:"begin,omitempty"`
	End   string `yaml:"end" mapstructure:"end" json:"end,omitempty"`
	// Function is "function:NAME", whose calls are tasks as well, or "tasks": the marks
	// heddle_task_begin and heddle_task_end of heddle.h.
	Function string `yaml:"function" mapstructure:"function" json:"function,omitempty"`
}

// builtin are the rules of the servers of docs/servers.md. A client of mariadbd is sent a greeting
// when it has connected.
var builtin = map[string]Rules{
	"apache2":    {Programs: []string{"apache2"}},
	"nginx":      {Programs: []string{"nginx"}},
	"lighttpd":   {Programs: []string{"lighttpd"}},
	"memcached":  {Programs: []string{"memcached"}},
	"redis":      {Programs: []string{"redis-server"}},
	"mariadb":    {Programs: []string{"mariadbd", "mysqld"}, Begin: "accept"},
	"postgresql": {Programs: []string{"postgres"}},
}

// BuiltinRules lists the names of the servers that have rules.
func BuiltinRules() []string { return slices.Sorted(maps.Keys(builtin)) }

// LoadRules returns the built-in rules of a name, or those of a YAML file.
func LoadRules(name string) (Rules, error) {
	if r, found := builtin[name]; found {
		return r, nil
	}
	var r Rules
	if _, err := os.Stat(name); err != nil && !strings.ContainsAny(name, "/.") {
		return r, errRules.New(name, strings.Join(BuiltinRules(), ", "))
	}
	f, err := yamlfile.Load(name, &r)
	if err != nil {
		return r, err
	}
	for _, x := range []struct {
		field, value, allowed string
		ok                    bool
	}{
		{"programs", fmt.Sprint(r.Programs), "the names of the server's programs, such as [apache2]", validPrograms(r.Programs)},
		{"begin", r.Begin, "read, accept", slices.Contains([]string{"", "read", "accept"}, r.Begin)},
		{"end", r.End, "reply, close", slices.Contains([]string{"", "reply", "close"}, r.End)},
		{"function", r.Function, region.Tasks + ", function:NAME", r.Function == "" || validFunction(r.Function)},
	} {
		if !x.ok {
			return r, f.Wrong(x.field, x.value, x.allowed)
		}
	}
	return r, nil
}

func validPrograms(list []string) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(s string) bool { return s == "" || strings.Contains(s, "/") })
}

func validFunction(text string) bool {
	spec, ok := region.Parse(text)
	return ok && (spec.Kind == region.Function || spec.Kind == region.TaskMarks)
}

// BeginOfTasks is Begin as the engine has it.
func (r Rules) BeginOfTasks() windows.Begin {
	if r.Begin == "accept" {
		return windows.AtAccept
	}
	return windows.AtRead
}

// EndOfTasks is End as the engine has it.
func (r Rules) EndOfTasks() windows.End {
	if r.End == "close" {
		return windows.AtClose
	}
	return windows.AtReply
}
