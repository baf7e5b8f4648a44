// Command h3 measures what H3's tables 2 and 4 show, with the suite's programs in
// place of the paper's, and prints the paper's numbers beside ours (S. Huang, B. Cai
// and J. Huang, Towards production-run heisenbugs reproduction on commercial
// hardware, USENIX ATC 2017).
//
//	go run ./paper-scripts/h3 table2
//	go run ./paper-scripts/h3 -timeout 60s table4
//
// For each program it takes the first seed that fails. Times are the host's; counts
// are repeatable.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/experiments/reproduce"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/sched"
)

// subject is a program that stands for one of the paper's, with the paper's numbers.
type subject struct {
	paper, program, args string
	sched                sched.Options
	right                bool // another output than the serial one is the failure
	// table2 is the paper's: threads, instructions, seconds for the symbolic trace.
	table2 string
	// table4 is the paper's: unknowns, read-write constraints of CLAP and H3 with the
	// reduction, and seconds of solving with either.
	table4 string
}

var subjects = []subject{
	{
		paper: "bbuf", program: "bounded-buffer", args: "-p 5 -n 20",
		table2: "5 / 1,235 / 5.5", table4: "79 / 13,902 / 9,982 (28.2 %) / 98 / 52",
	},
	{
		paper: "sbuf", program: "string-buffer", args: "-p 2 -r 30", sched: sched.Options{Policy: sched.Random, Quantum: 200},
		table2: "2 / 64,993 / 1.6", table4: "102 / 302 / 208 (31.1 %) / 1 / 1",
	},
	{
		paper: "racey1", program: "racey", args: "-p 4 -i 500", right: true,
		table2: "4 / 1,229,632 / 107", table4: "15,040 / 540,388 / 50,388 (90.7 %) / - / 267",
	},
	{paper: "racey2", program: "racey", args: "-p 4 -i 1000", right: true, table4: "30,108 / 41,607,900 / 200,788 (99.5 %) / - / -"},
	{paper: "racey3", program: "racey", args: "-p 4 -i 1500", right: true, table4: "67,850 / 1.3e8 / 451,188 (99.7 %) / - / -"},
}

func main() {
	timeout := flag.Duration("timeout", 10*time.Second, "of each solver")
	flag.Parse()
	if err := run(context.Background(), flag.Arg(0), *timeout); err != nil {
		fmt.Fprintln(os.Stderr, "h3:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, table string, timeout time.Duration) error {
	w := tabwriter.NewWriter(os.Stdout, 8, 0, 2, ' ', 0)
	switch table {
	case "table2":
		fmt.Fprintln(w, "program\tthreads / instructions / seconds: paper\tours\tshared pieces\tevents\tbits per instruction")
	case "table4":
		fmt.Fprintln(w, "program\tunknowns / CLAP / H3 (reduction) / seconds CLAP / H3: paper\tours\theddle: constraints\tseconds")
	default:
		return fmt.Errorf("table2 or table4 is needed, not %q", table)
	}
	for i := range subjects {
		if table == "table2" && subjects[i].table2 == "" {
			continue
		}
		if err := measure(ctx, w, &subjects[i], table, timeout); err != nil {
			return fmt.Errorf("%s: %w", subjects[i].paper, err)
		}
		if err := w.Flush(); err != nil { // rows can take long
			return err
		}
	}
	return nil
}

// measure prints the row of a program.
func measure(ctx context.Context, w io.Writer, s *subject, table string, timeout time.Duration) error {
	dir, err := os.MkdirTemp("", "heddle-h3")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "failing.trace")
	right, err := record(ctx, s, file)
	if err != nil {
		return err
	}
	r, err := reproduce.Open(ctx, file)
	if err != nil {
		return err
	}
	defer r.Close()
	o := reproduce.Options{Now: time.Now, Timeout: max(timeout, time.Minute), Stdout: right}
	out, err := r.Reproduce(ctx, o)
	if err != nil {
		return err
	}
	if !out.Verified {
		return fmt.Errorf("not reproduced: %s %s", out.Found, out.Why)
	}
	if table == "table2" {
		size, err := r.Size()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%s\t%d / %d / %.3f\t%d\t%d\t%.2f\n", s.paper, s.table2, size.Threads, size.Instructions, out.Traced.Seconds(),
			len(out.Trace.Shared), len(out.Trace.Trace.Events), float64(8*size.Bytes)/float64(size.Instructions))
		return nil
	}
	return solvers(ctx, w, s, r, out, o, timeout)
}

// solvers prints what each encoding comes to.
func solvers(ctx context.Context, w io.Writer, s *subject, r *reproduce.Recording, out *reproduce.Outcome, o reproduce.Options, timeout time.Duration) error {
	counts, times := map[string]int{}, map[string]string{"clap": "-", "h3": "-"}
	for _, e := range reproduce.Encodings() {
		_, n, err := out.Clauses(e)
		if err != nil {
			counts[e] = -1 // more than it may take
			continue
		}
		counts[e] = n
		if e == "heddle" {
			continue
		}
		o.Encoding, o.Timeout = e, timeout
		if found, err := r.Reproduce(ctx, o); err == nil && found.Answer == smt.Satisfiable {
			times[e] = fmt.Sprintf("%.1f", found.Solved.Seconds())
		}
	}
	reduction := "-"
	if counts["clap"] > 0 && counts["h3"] >= 0 {
		reduction = fmt.Sprintf("%.1f %%", 100*(1-float64(counts["h3"])/float64(counts["clap"])))
	}
	_, err := fmt.Fprintf(w, "%s\t%s\t%d / %d / %d (%s) / %s / %s\t%d\t%.2f\n", s.paper, s.table4, len(out.Trace.Trace.Events),
		counts["clap"], counts["h3"], reduction, times["clap"], times["h3"], counts["heddle"], out.Solved.Seconds())
	return err
}

// record records the first seed that fails, and returns the right output if that is
// how failures are told.
func record(ctx context.Context, s *subject, file string) ([]byte, error) {
	p, err := programs.Find(s.program)
	if err != nil {
		return nil, err
	}
	bin, err := p.Build(programs.Variant{Form: programs.Buggy, Optimize: 2, Static: true, Debug: true})
	if err != nil {
		return nil, err
	}
	c := heddle.DefaultConfig()
	c.Args, c.Dir = append([]string{bin}, strings.Fields(s.args)...), "/"
	var right []byte
	if s.right {
		serial := c
		var stdout bytes.Buffer
		serial.Cores, serial.Sched, serial.Stdout = 1, sched.Options{Policy: sched.RR}, &stdout
		if _, err := heddle.Run(ctx, serial); err != nil {
			return nil, err
		}
		right = stdout.Bytes()
	}
	c.Sched = s.sched
	for c.Seed = 1; c.Seed <= 100; c.Seed++ {
		failed, err := attempt(ctx, c, file, right)
		if err != nil || failed {
			return right, err
		}
	}
	return nil, fmt.Errorf("no seed up to 100 fails")
}

func attempt(ctx context.Context, c heddle.Config, file string, right []byte) (bool, error) {
	f, err := os.Create(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var stdout bytes.Buffer
	c.Stdout, c.Record = &stdout, &heddle.Record{To: f, PT: &pt.Config{PSBPeriod: 4096, RetCompression: true}}
	result, err := heddle.Run(ctx, c)
	if err != nil {
		return false, err
	}
	_, failed := result.Failure(nil)
	return failed || right != nil && !bytes.Equal(right, stdout.Bytes()), nil
}
