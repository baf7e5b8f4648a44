package windows

import "github.com/heddle-dmt/heddle/experiments/windows/settings"

// Rules say which processes are the server, and when its tasks begin and end.
type Rules = settings.Rules

// BuiltinRules lists the names of the servers that have rules.
func BuiltinRules() []string { return settings.BuiltinRules() }

// LoadRules returns the built-in rules of a name, or those of a YAML file.
func LoadRules(name string) (Rules, error) { return settings.LoadRules(name) }
