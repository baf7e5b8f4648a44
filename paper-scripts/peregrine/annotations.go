package main

import (
	"context"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

func planTable6(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "lines", Key: "lines", Number: true},
			{Name: "paper", Key: "paper_lines", Number: true},
			{Name: "annotations", Key: "annotations", Number: true},
			{Name: "paper: PEREGRINE", Key: "paper_peregrine", Number: true},
			{Name: "paper: TERN", Key: "paper_tern", Number: true},
		},
		Notes: []string{
			"Annotations are marks of heddle.h in the source, and functions of the program that models and summaries name. Those of the C library, which all programs share, are not counted, and neither are the paper's.",
			"Arguments, files and sockets are inputs without being marked. The paper's annotations: PBZip2's search function, when it decompresses, and the range of a variable in fft; ours has none of the first, and does without the second.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(_ context.Context, subject *study.Subject, _ string) ([]string, error) {
			a, err := subject.Annotations()
			if err != nil {
				return nil, err
			}
			ours := a.Cells()
			return []string{x.Name, ours[0], x.PaperValue("lines"), ours[1], x.PaperValue("peregrine"), x.PaperValue("tern")}, nil
		}))
	}
	return p, nil
}
