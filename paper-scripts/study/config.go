package study

import (
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/heddle-dmt/heddle/internal/yamlfile"
)

// Load fills *into from the configuration file. Of the flags named, those given on the command line
// override the fields of their names, "sync-runs" sync_runs.
func (o *Options) Load(into any, flags ...string) (*yamlfile.File, error) {
	return yamlfile.LoadBound(o.Config, into, func(v *viper.Viper) {
		for _, name := range flags {
			if f := o.Flags.Lookup(name); f.Changed {
				v.Set(strings.ReplaceAll(name, "-", "_"), flagValue(f))
			}
		}
	})
}

// flagValue is that of a flag, as a list if it is one.
func flagValue(f *pflag.Flag) any {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return f.Value.String()
}
