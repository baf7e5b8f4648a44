package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/recorder"
)

func planFigure13(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "instructions", Key: "instructions", Number: true},
			{Name: "over the machine's", Key: "recorded", Number: true},
			{Name: "over native", Key: "native", Number: true},
			{Name: "of that the machine", Key: "machine", Number: true},
			{Name: "paper: over native", Key: "paper"},
		},
		Notes: []string{
			fmt.Sprintf("Processor time of a run with all loads and stores recorded to a file, in times of that of a run of the machine without, and of a native run; means of %d runs.", s.Times),
			"The paper instruments loads and stores of programs that run natively, and has 2 to 35 times for eight programs that its text does not name. Native runs of these sizes take milliseconds, most of them to start and to end.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
			n, err := measureRecording(ctx, s, subject, dir)
			if err != nil {
				return nil, err
			}
			over := func(a, b float64) string { return fmt.Sprintf("%.1f", a/b) }
			return []string{
				x.Name, fmt.Sprint(n.instructions), over(n.recorded, n.plain), over(n.recorded, n.native), over(n.plain, n.native), "2 to 35",
			}, nil
		}, s.Times))
	}
	return p, nil
}

// processorTimes are the mean processor times of runs.
type processorTimes struct {
	instructions            uint64
	native, plain, recorded float64
}

// measureRecording measures a subject natively, on the machine, and recorded.
func measureRecording(ctx context.Context, s *study.Settings, subject *study.Subject, dir string) (*processorTimes, error) {
	n := &processorTimes{}
	for range s.Times {
		c := subject.Config(s.Seed)
		_, spent, err := subject.Native(ctx)
		if err != nil {
			return nil, err
		}
		n.native += spent.Seconds()
		plain, err := study.ProcessorTimeOf(func() error {
			_, r, err := study.Run(ctx, c)
			if err == nil {
				n.instructions = r.Instructions
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		n.plain += plain.Seconds()
		recorded, err := study.ProcessorTimeOf(func() error { return recordAccesses(ctx, c, filepath.Join(dir, "trace")) })
		if err != nil {
			return nil, err
		}
		n.recorded += recorded.Seconds()
	}
	return n, nil
}

// recordAccesses records a run's loads and stores to a file.
func recordAccesses(ctx context.Context, c machine.Config, name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	c.Record = &machine.Record{To: file, Memory: &recorder.MemoryConfig{}}
	_, _, err = study.Run(ctx, c)
	return err
}
