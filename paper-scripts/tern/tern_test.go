package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/paper-scripts/study/studytest"
)

// measured runs the command in the repository's root.
func measured(t *testing.T, args ...string) (rows []map[string]string) {
	t.Helper()
	t.Chdir("../..")
	return studytest.Measured(t, newScript(), addFlags, t.TempDir(), args...)
}

// Under TERN the bug never shows, at any size, and CoreDet does the same in every run of an
// input (table 4).
func TestTable4(t *testing.T) {
	testsize.SkipQuick(t)
	for _, row := range measured(t, "--runs", "3", "--threads", "2,4", "table4") {
		for _, size := range []string{"m10", "m12", "m14"} {
			switch shown := row[size]; {
			case row["mode"] == "TERN" && (shown != "0" || row["left"] != "0"):
				t.Errorf("under TERN the bug shows, or the schedule is left: %v", row)
			case row["mode"] == "CoreDet" && shown != "0" && shown != "3":
				t.Errorf("under CoreDet the runs of one input differ: %v", row)
			}
		}
	}
}

// Debian's pbzip2: the schedule of one file serves others with the same number of blocks
// (table 1).
func TestTable1(t *testing.T) {
	for _, row := range measured(t, "--only", "pbzip2-one-block", "table1") {
		if row["served"] != "3 of 3" || !strings.Contains(row["paper"], "Same number of file blocks") {
			t.Errorf("%v", row)
		}
		// TERN's pruning leaves out bounds by which the terms of the sound slice are
		// simplified, so it may have more terms. A thousand would be one for each digit.
		for _, kind := range []string{"terms", "sound_terms"} {
			if terms := studytest.Number(t, row[kind]); terms < 1 || terms > 40 {
				t.Errorf("%s: %v", kind, row)
			}
		}
	}
}

// Admitted inputs follow the schedule, and at least the memoized input is admitted (table
// 5).
func TestTable5(t *testing.T) {
	testsize.SkipQuick(t)
	for _, row := range measured(t, "--only", "fft", "--inputs", "40", "--followed", "2", "table5") {
		rate := studytest.Number(t, strings.TrimSuffix(row["rate"], " %"))
		if row["memoized"] != "1" || row["schedules"] != "1" || rate < 100.0/41 || row["tried"] == "0" || row["tried"] != row["followed"] {
			t.Errorf("%v", row)
		}
	}
}

// With hybrid schedules the bug is reproduced, and avoided, in every run (table 7).
func TestTable7(t *testing.T) {
	testsize.SkipQuick(t)
	for _, row := range measured(t, "--only", "apache-21287", "--runs", "4", "table7") {
		if row["hybrid_reproduced"] != "4 of 4" || row["hybrid_avoided"] != "4 of 4" || row["avoided"] != "4 of 4" {
			t.Errorf("%v", row)
		}
	}
}

// Traces under a schedule differ less than free ones, and least under a hybrid schedule
// (table 8).
func TestTable8(t *testing.T) {
	testsize.SkipQuick(t)
	for _, row := range measured(t, "--runs", "3", "table8") {
		free, tern, hybrid := studytest.Number(t, row["free"]), studytest.Number(t, row["tern"]), studytest.Number(t, row["hybrid"])
		if tern >= free || hybrid > tern || row["paper_accesses"] != "1,234" || row["paper_times"] != "2.33" {
			t.Errorf("%v", row)
		}
	}
}

// Textbook distances, and the mean of three.
func TestDistance(t *testing.T) {
	for _, x := range []struct {
		a, b string
		want int
	}{{"kitten", "sitting", 3}, {"saturday", "sunday", 3}, {"", "abc", 3}, {"same", "same", 0}, {"flaw", "lawn", 2}} {
		if got := editDistance([]byte(x.a), []byte(x.b)); got != x.want || editDistance([]byte(x.b), []byte(x.a)) != got {
			t.Errorf("%s and %s: %d, not %d", x.a, x.b, got, x.want)
		}
	}
	if got := pairwiseMean([][]byte{[]byte("a"), []byte("b"), []byte("ab")}); got != 1 {
		t.Errorf("mean %v", got)
	}
}

// Skipping waits makes nothing slower, beyond noise; pruning leaves no more terms, and
// memoizing takes longer than running (figures 12 and 13, table 6).
func TestCosts(t *testing.T) {
	testsize.SkipQuick(t)
	t.Run("figure12", func(t *testing.T) {
		for _, row := range measured(t, "--only", "fft,lu-non-contig", "--times", "1", "figure12") {
			if studytest.Number(t, row["skipped"]) > 1.05*studytest.Number(t, row["all"]) {
				t.Errorf("%v", row)
			}
		}
	})
	t.Run("figure13", func(t *testing.T) {
		for _, row := range measured(t, "--only", "radix", "figure13") {
			all, sliced := studytest.Number(t, row["terms_all"]), studytest.Number(t, row["terms_sliced"])
			if sliced > all || studytest.Number(t, row["terms_simplified"]) > all || studytest.Number(t, row["terms_both"]) > sliced {
				t.Errorf("%v", row)
			}
		}
	})
	t.Run("table6", func(t *testing.T) {
		for _, row := range measured(t, "--only", "radix", "table6") {
			if studytest.Number(t, row["times"]) <= 1 || studytest.Number(t, row["instructions"]) < 100_000 {
				t.Errorf("%v", row)
			}
		}
	})
}

// The numbers for TERN are those of PEREGRINE's table 6, which the other script's file has,
// too; programs here need no annotation (table 3).
func TestTable3(t *testing.T) {
	s := &study.Settings{}
	if _, err := yamlfile.Load(filepath.Join("../..", "configs/peregrine/annotations.yaml"), s); err != nil {
		t.Fatal(err)
	}
	theirs := map[string]string{}
	for _, p := range s.Programs {
		theirs[p.Name] = p.PaperValue("tern")
	}
	for _, row := range measured(t, "table3") {
		if want, known := theirs[row["program"]]; known && row["paper_annotations"] != want || row["annotations"] != "0" {
			t.Errorf("%v, the other file %s", row, want)
		}
	}
}

// Errors in a configuration file are reported with their position.
func TestWrongSettings(t *testing.T) {
	t.Chdir("../..")
	file := filepath.Join(t.TempDir(), "file.yaml")
	for _, x := range []struct{ artefact, text, says string }{
		{"table1", "colour: red\n", file + ":1: unknown field colour"},
		{"table5", "inputs: 0\n", file + ":1: inputs is 0"},
		{"figure11", "threads: 8\nprograms:\n  - {name: nothing, form: fixed}\n", file + ":3: programs[0].name is nothing"},
	} {
		if err := os.WriteFile(file, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := newScript().Run(t.Context(), &bytes.Buffer{}, []string{"--config", file, "--store", t.TempDir(), x.artefact}, addFlags)
		if err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, not %q", x.artefact, err, x.says)
		}
	}
}

func TestAllAreInThePlan(t *testing.T) { studytest.InPlan(t, newScript()) }
