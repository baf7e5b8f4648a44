package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/paper-scripts/papers/report"
)

// resultsFolder has the results that the documents quote, a file for each program.
const resultsFolder = "paper-scripts/results"

// readResults reads the results of a repository.
func readResults(root string) (all []*report.Result, err error) {
	files, err := filepath.Glob(filepath.Join(root, resultsFolder, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		list, err := readResultsFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

func readResultsFile(file string) (list []*report.Result, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}

// keepResults replaces the stored results of the steps that did not fail.
func keepResults(root string, tasks []*task) error {
	byProgram := map[string][]*report.Result{}
	for _, t := range tasks {
		if t.result.Error == "" {
			byProgram[t.paper.Program] = append(byProgram[t.paper.Program], t.result)
		}
	}
	for program, fresh := range byProgram {
		file := filepath.Join(root, resultsFolder, program+".json")
		list, err := readResultsFile(file)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		for _, r := range fresh {
			at := slices.IndexFunc(list, func(old *report.Result) bool { return slices.Equal(old.Artefacts, r.Artefacts) })
			if at < 0 {
				list = append(list, r)
			} else {
				list[at] = r
			}
		}
		if err := writeResults(file, list); err != nil {
			return err
		}
	}
	return nil
}

// writeResults writes a file of results.
func writeResults(file string, list []*report.Result) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return outfile.Write(file, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		return e.Encode(list)
	})
}

// updateDocuments returns the documents of a repository that have parts made of results, by their paths, as the
// results have them.
func updateDocuments(root string) (texts map[string]string, err error) {
	results, err := readResults(root)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	texts = map[string]string{}
	for _, file := range files {
		old, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(string(old), "<!-- begin: make papers") {
			continue
		}
		if texts[file], err = report.Update(string(old), results); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return texts, nil
}

// writeDocuments writes the documents whose parts differ from the results.
func writeDocuments(root string, out io.Writer) error {
	texts, err := updateDocuments(root)
	if err != nil {
		return err
	}
	for file, text := range texts {
		old, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if string(old) == text {
			continue
		}
		if err := outfile.WriteBytes(file, []byte(text)); err != nil {
			return err
		}
		fmt.Fprintln(out, file)
	}
	return nil
}
