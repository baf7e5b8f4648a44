package campaign

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestLogRank compares the test with the example of Freireich and others (1963), remission times under
// 6-mercaptopurine and placebo: the published log-rank statistic is 16.79, with 10.75 failures expected in the
// second group (Kleinbaum and Klein, Survival Analysis, chapter 2, has 9 and 19.26, 21 and 10.74).
func TestLogRank(t *testing.T) {
	treated := "6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+"
	placebo := "1 1 2 2 3 4 4 5 5 8 8 8 8 11 11 12 12 15 17 22 23"
	list := append(remissions(t, "treated", treated), remissions(t, "placebo", placebo)...)
	x := compare(list, "treated", "placebo")
	if x.found != 9 || math.Abs(x.expected-19.25) > 0.02 || math.Abs(x.p-4.17e-5) > 0.02e-5 {
		t.Errorf("%+v", x)
	}
	// Kaplan and Meier's estimate of the treated group after 6 and 23 weeks: 0.857 and 0.448 (the same book).
	shares := foundOver(list, "treated")
	if got := 1 - shareAt(shares, 6); math.Abs(got-0.857) > 0.001 {
		t.Errorf("survival at 6: %.3f", got)
	}
	if got := 1 - shareAt(shares, 23); math.Abs(got-0.448) > 0.001 {
		t.Errorf("survival at 23: %.3f", got)
	}
}

func shareAt(list []foundShare, at float64) (share float64) {
	for _, x := range list {
		if x.schedules <= at {
			share = x.share
		}
	}
	return share
}

// remissions are results from times, of which censored ones end with a plus sign.
func remissions(t *testing.T, strategy, times string) (list []Result) {
	t.Helper()
	for _, word := range strings.Fields(times) {
		number, censored := strings.CutSuffix(word, "+")
		n := 0
		for _, c := range number {
			n = 10*n + int(c-'0')
		}
		list = append(list, Result{Program: "trial", Strategy: strategy, Schedules: n, Limit: 35, Found: !censored})
	}
	return list
}

// TestCampaign: a campaign that is interrupted and continued has the results of one that is not.
func TestCampaign(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "small.yaml")
	text := "programs:\n- {bug: stack}\n- {bug: twostage, n: 2}\nstrategies: [walk, all]\ntrials: 2\nschedules: 60\n"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	whole := run(t, t.Context(), file)
	lines, err := os.ReadFile(filepath.Join(dir, "small.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	rest := strings.SplitAfterN(string(lines), "\n", 4)
	if err := os.WriteFile(filepath.Join(dir, "small.jsonl"), []byte(strings.Join(rest[:3], "")), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := run(t, t.Context(), file); !reflect.DeepEqual(got, whole) || len(whole) != 8 {
		t.Errorf("continued: %+v\nat once: %+v", got, whole)
	}
	var out strings.Builder
	if err := Main(t.Context(), file, filepath.Join(dir, "plot.svg"), pretend, &out, &strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"stack", "twostage 2", "walk", "log-rank"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the tables lack %q:\n%s", want, &out)
		}
	}
	if svg, err := os.ReadFile(filepath.Join(dir, "plot.svg")); err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("plot: %v", err)
	}
}

// pretend is a search that finds nothing or something, by its seed.
func pretend(_ context.Context, s Search) (tried int, failure string, err error) {
	if s.Seed%2 == 0 {
		return s.Schedules, "", nil
	}
	return 10*len(s.Strategies) + int(s.Seed), "assertion", nil
}

func run(t *testing.T, ctx context.Context, file string) []Result {
	t.Helper()
	c, err := Load(file, pretend)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Run(ctx, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestWrongFilesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"strategies: [walk]\n":                               "programs",
		"programs: [{bug: stack}]\nstrategies: [fast]\n":     "strategies",
		"programs: [{bug: stack}]\nmodels: [sc+arm]\n":       "models",
		"programs: [{bug: stack, command: [x]}]\n":           "programs",
		"programs: [{bug: stack}]\ntrials: 0\n":              "trials",
		"programs: [{bug: stack}]\nschedulez: 3\n":           "schedulez",
		"programs: [{bug: stack}]\nschedules: -1\nseed: 2\n": "schedules",
	} {
		file := filepath.Join(t.TempDir(), "wrong.yaml")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(file, pretend); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
