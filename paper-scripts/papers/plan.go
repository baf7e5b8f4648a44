package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/paper-scripts/papers/report"
)

// planFile is the list of steps, from the root of the repository or of the installed files.
const planFile = "configs/papers/steps.yaml"

// plan is the content of planFile.
type plan struct {
	Papers []paper `mapstructure:"papers"`
}

// paper is a paper with the steps that measure its tables and figures.
type paper struct {
	// Program is the folder under paper-scripts.
	Program  string `mapstructure:"program"`
	Title    string `mapstructure:"title"`
	Citation string `mapstructure:"citation"`
	Steps    []step `mapstructure:"steps"`
	// Why are the reasons for differences.
	Why []report.Reason `mapstructure:"why"`
}

// step is one call of a paper's program.
type step struct {
	// Artefacts are the tables and figures; those of one measurement are in one step.
	Artefacts []string `mapstructure:"artefacts"`
	// Alone is set if the host's time is measured: no other step runs meanwhile.
	Alone bool `mapstructure:"alone"`
	// Environment has further variables of the environment as K=V.
	Environment []string `mapstructure:"environment"`
	// Default, Quick and Paper are the flags at each size.
	Default string `mapstructure:"default"`
	Quick   string `mapstructure:"quick"`
	Paper   string `mapstructure:"paper"`
	// Seconds is the time that it takes at each size on one core, of which only the ratios matter: the time
	// left is estimated with them.
	Seconds map[string]float64 `mapstructure:"seconds"`
}

// The sizes.
const (
	sizeQuick   = "quick"
	sizeDefault = "default"
	sizePaper   = "paper"
)

// flags are the step's at a size.
func (s *step) flags(size string) []string {
	switch size {
	case sizeQuick:
		return strings.Fields(s.Quick)
	case sizePaper:
		return strings.Fields(s.Paper)
	}
	return strings.Fields(s.Default)
}

// name is unique among the steps of all papers.
func (p *paper) name(s *step) string { return p.Program + "/" + s.Artefacts[0] }

// has reports whether a step has one of the wanted: a program, or program/artefact. All are wanted if none is named.
func (p *paper) has(s *step, wanted []string) bool {
	if len(wanted) == 0 || slices.Contains(wanted, p.Program) {
		return true
	}
	return slices.ContainsFunc(s.Artefacts, func(a string) bool { return slices.Contains(wanted, p.Program+"/"+a) })
}

// load reads the plan and checks that everything wanted is in it.
func load(root string, wanted []string) (*plan, error) {
	p := &plan{}
	f, err := yamlfile.Load(filepath.Join(root, planFile), p)
	if err != nil {
		return nil, err
	}
	var names []string
	for i, x := range p.Papers {
		names = append(names, x.Program)
		for j, s := range x.Steps {
			place := fmt.Sprintf("papers[%d].steps[%d]", i, j)
			if len(s.Artefacts) == 0 {
				return nil, f.Wrong(place, "empty", "a list of artefacts")
			}
			for _, size := range []string{sizeQuick, sizeDefault, sizePaper} {
				if s.Seconds[size] <= 0 {
					return nil, f.Wrong(place+".seconds", s.Seconds, "seconds for each of quick, default and paper")
				}
			}
			for _, a := range s.Artefacts {
				names = append(names, x.Program+"/"+a)
			}
		}
	}
	for _, w := range wanted {
		if !slices.Contains(names, w) {
			return nil, fmt.Errorf("%s is no paper, table or figure; %s", w, p.suggest(w, names))
		}
	}
	return p, nil
}

// suggest says which names there are instead of a wrong one: its table of each paper, the nearest, those of its paper, or the papers.
func (p *plan) suggest(wrong string, names []string) string {
	var same []string
	for _, name := range names {
		if strings.HasSuffix(name, "/"+wrong) {
			same = append(same, name)
		}
	}
	if len(same) > 0 {
		return "there are " + strings.Join(same, ", ")
	}
	if near := cli.Nearest(wrong, names); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	var papers []string
	for _, x := range p.Papers {
		if strings.HasPrefix(wrong, x.Program+"/") {
			own := slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, x.Program+"/") })
			return "there are " + strings.Join(own, ", ")
		}
		papers = append(papers, x.Program)
	}
	return fmt.Sprintf("there are %s, and tables and figures of each, such as %s", strings.Join(papers, ", "), p.Papers[0].name(&p.Papers[0].Steps[0]))
}

// findRoot returns the folder with configs: the working folder, or that of the installed files beside this program.
func findRoot() (string, error) {
	var tried []string
	roots := []string{"."}
	if self, err := os.Executable(); err == nil {
		dir := filepath.Dir(self)
		roots = append(roots, filepath.Dir(dir), filepath.Join(dir, "../../share/heddle"))
	}
	for _, root := range roots {
		if _, err := os.Stat(filepath.Join(root, planFile)); err == nil {
			return filepath.Abs(root)
		}
		tried = append(tried, filepath.Join(root, planFile))
	}
	return "", fmt.Errorf("the list of tables and figures is missing: none of %s is there; call this in the repository, or install the whole package heddle-papers", strings.Join(tried, ", "))
}

// findPrograms returns the folder with the papers' programs, which is beside this one.
func findPrograms(p *plan) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(self), "papers")
	for _, x := range p.Papers {
		if _, err := os.Stat(filepath.Join(dir, x.Program)); err != nil {
			return "", fmt.Errorf("the program %s is missing; build all with `make papers`, or install the whole package heddle-papers", filepath.Join(dir, x.Program))
		}
	}
	return dir, nil
}
