package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/cmd/heddle/calibrate"
	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
)

func (a *app) calibrateCommand() *cobra.Command {
	var output string
	var repetitions int
	c := &cobra.Command{
		Use:   "calibrate [flags]",
		Short: "Measure the costs of the timing model on this host",
		Long: `Measure on this host what the timing model's costs stand for, with small native
programs that are compiled here, and print what was measured beside the defaults.
With -o the costs are written to a file that 'heddle run --costs' takes; no run
depends on the host unless it is given such a file. Measure on a quiet host.`,
		Args: command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.calibrate(c.Context(), output, repetitions) },
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write the costs to `FILE`")
	c.Flags().IntVar(&repetitions, "repetitions", 7, "take the medians of `N` measurements")
	return c
}

func (a *app) calibrate(ctx context.Context, output string, repetitions int) error {
	if repetitions < 1 || repetitions > 1000 {
		return command.ErrFlag.New("repetitions", repetitions, "1 to 1000")
	}
	if err := checkWritable(output); err != nil {
		return err
	}
	list, err := calibrate.Measure(ctx, repetitions)
	if err != nil {
		return err
	}
	a.showCosts(list)
	if output == "" {
		return nil
	}
	err = outfile.Write(output, func(w io.Writer) error { return calibrate.Write(w, processorName(os.ReadFile), list) })
	if err != nil {
		return command.ErrWriteFile.Wrap(err, output)
	}
	return nil
}

// showCosts prints the table.
func (a *app) showCosts(list []calibrate.Measurement) {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "cost\tmeasured\tdefault\tunit\twhat costs it")
	for i := range list {
		m := &list[i]
		measured := "-"
		if m.Measured {
			measured = fmt.Sprintf("%.2f", m.Value)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", m.Field.Name, measured, m.Field.Default, m.Field.Unit(), m.Field.What)
	}
	w.Flush()
}

// processorName is Linux's name of the host's processor.
func processorName(read func(string) ([]byte, error)) string {
	text, err := read("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return "an unknown processor"
}

// loadCosts puts the costs of a file that calibrate wrote, or of the costs
// section of any other, over those in the options.
func loadCosts(path string, options *job.Options) error {
	file := struct {
		Costs arch.Costs `mapstructure:"costs"`
	}{options.Costs}
	read, err := yamlfile.Load(path, &file)
	if err != nil {
		return err
	}
	options.Costs = file.Costs
	if wrong, ok := job.CheckCosts(file.Costs).(*job.FieldError); ok {
		return read.Wrong(wrong.Field, wrong.Found, wrong.Allowed)
	}
	return nil
}
