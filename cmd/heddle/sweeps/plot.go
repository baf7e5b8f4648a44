package sweeps

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/experiments/sweep"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/outfile"
)

var errPlotFile = errs.Define("plot-file",
	"{found} cannot be a plot; allowed: a name that ends in {allowed}",
	"The file that a plot is written to says by its end which form it has.",
	"Name a file with one of these ends after `heddle experiment plot -o`.")

var errExport = errs.Define("export-not-written",
	"cannot write {file}",
	"The folder of the file after `heddle experiment export -o` does not exist or may not be written, or the disk is full.",
	"Name another file, or make room.")

func (p *Program) plotCommand() *cobra.Command {
	var o sweep.Options
	var plot sweep.PlotOptions
	var names, outputs, formats []string
	c := &cobra.Command{
		Use:   "plot FILE.yaml...",
		Short: "Draw the stored results of experiments",
		Long: `Draw the plots that the section 'plots' of the experiment file describes, into a
folder beside the store, or one that the options from --kind on describe. Several
files make one plot; the parameter 'experiment' says which a result is of.`,
		Args: p.Files,
		RunE: func(_ *cobra.Command, args []string) error {
			for _, format := range formats {
				if !slices.Contains(plots.Formats(), format) {
					return errFormat.New(fmt.Sprintf("%q", format), strings.Join(plots.Formats(), ", "))
				}
			}
			for _, path := range outputs {
				if !slices.Contains(plots.Formats(), strings.TrimPrefix(filepath.Ext(path), ".")) {
					return errPlotFile.New(path, "."+strings.Join(plots.Formats(), ", ."))
				}
			}
			all, err := sweep.LoadAll(args)
			if err != nil {
				return err
			}
			list := []sweep.PlotOptions{plot}
			if plot.Kind == "" {
				if list, err = all[0].ChoosePlots(names); err != nil {
					return err
				}
			}
			if len(outputs) > 0 && len(list) > 1 {
				return errTogether.New("-o", "several plots")
			}
			for _, plot := range list {
				err := p.plot(all, o, plot, outputs, formats)
				if err != nil && plot.Name != "" { // of the file, which may have several
					err = fmt.Errorf("plot %s: %w", plot.Name, err)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	addStoreFlag(c, &o)
	c.Flags().StringSliceVar(&names, "plot", nil, "draw only the file's plots with these `NAMES`")
	c.Flags().StringArrayVarP(&outputs, "output", "o", nil, "write to `FILE`, whose end is one of "+strings.Join(plots.Formats(), ", ")+"; may be repeated")
	c.Flags().StringSliceVar(&formats, "format", plots.Formats(), "`FORMATS` of the files in the folder")
	c.Flags().StringVar(&plot.Kind, "kind", "", "draw a plot of this `KIND`: "+strings.Join(plots.Kinds(), ", "))
	c.Flags().StringVar(&plot.X, "x", "threads", "`PARAMETER` on the x axis")
	c.Flags().StringVar(&plot.Y, "y", "", "`MEASURE` on the y axis, as after --measures of heddle experiment table, or speedup (default cycles); of a heat map, the parameter")
	c.Flags().StringVar(&plot.Value, "value", "", "`MEASURE` that the colours of a heat map show (default cycles)")
	c.Flags().StringSliceVar(&plot.Series, "series", nil, "`PARAMETERS` whose values have lines or colours of their own")
	c.Flags().StringSliceVar(&plot.Log, "log", nil, "`AXES` that are logarithmic: x, y, value")
	c.Flags().StringVar(&plot.Statistic, "statistic", "", "draw the mean or median: `NAME` (default mean)")
	c.Flags().StringVar(&plot.Errors, "errors", "", "error bars: `NAME`, ci, sd, range, quartiles or none (default ci)")
	c.Flags().StringVar(&plot.Title, "title", "", "`TEXT` above the plot")
	c.Flags().StringArrayVar(&plot.Where, "where", nil, "draw the rows with these values, such as `\"policy=rr,timed threads>=4\"`")
	c.Flags().StringVar(&plot.Base, "base", "", "draw ratios to the row with these values, such as `\"policy=timed\"`, that is equal otherwise")
	c.Flags().Float64Var(&plot.Confidence, "confidence", 0, "`LEVEL` of confidence intervals (default 0.95)")
	return c
}

// plot draws one plot.
func (p *Program) plot(all []*sweep.Experiment, o sweep.Options, plot sweep.PlotOptions, files, formats []string) error {
	if plot.Name == "" {
		plot.Name = plot.Kind
	}
	drawing, err := sweep.Plot(all, o, plot)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		base := all[0].FigureBase(o, plot.Name)
		for _, format := range formats {
			files = append(files, base+"."+format)
		}
	}
	if err := plots.Draw(drawing, files); err != nil {
		return err
	}
	for _, file := range files {
		fmt.Fprintln(p.Stdout, file)
	}
	return nil
}

func (p *Program) exportCommand() *cobra.Command {
	var o sweep.Options
	var output string
	var asParquet bool
	c := &cobra.Command{
		Use:   "export FILE.yaml",
		Short: "Write the stored runs of an experiment as CSV or Parquet",
		Long: `Write the stored runs of an experiment as CSV, a line for each run with a column for
each parameter, measure and value, for pandas, R and spreadsheets, or as Parquet, whose
columns have types.`,
		Args: p.OneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			x, err := sweep.Load(args[0])
			if err != nil {
				return err
			}
			if output == "" {
				return x.Export(o, asParquet, p.Stdout)
			}
			var text bytes.Buffer
			if err := x.Export(o, asParquet, &text); err != nil {
				return err
			}
			if err := outfile.WriteBytes(output, text.Bytes()); err != nil {
				return errExport.Wrap(err, output)
			}
			return nil
		},
	}
	addStoreFlag(c, &o)
	c.Flags().StringVarP(&output, "output", "o", "", "write to `FILE` (default: standard output)")
	c.Flags().BoolVar(&asParquet, "parquet", false, "write Parquet in place of CSV")
	return c
}
