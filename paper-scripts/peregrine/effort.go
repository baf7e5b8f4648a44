package main

import (
	"fmt"
	"math"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// table4 is the time of each analysis, and how many times as fast each is as the paper's
// per thousand instructions.
var table4 = analysisArtefact("table4", "Table 4: analysis time", nil, func(found []map[string]string, by map[string]*study.ProgramStudy) *table.Table {
	faster := []string{"slicing", "simplification", "symbolic"}
	t := &table.Table{Head: append([]table.Column{{Name: "program", Key: "program"}}, study.WithPaperColumns(
		table.Column{Name: "trace, thousands", Key: "trace"},
		table.Column{Name: "races, s", Key: "detection"},
		table.Column{Name: "slicing, s", Key: "slicing"},
		table.Column{Name: "simplification, s", Key: "simplification"},
		table.Column{Name: "symbolic, s", Key: "symbolic"},
	)...)}
	for _, key := range faster {
		t.Head = append(t.Head, table.Column{Name: key + ", times as fast", Key: "times_" + key, Number: true})
	}
	t.Head = append(t.Head, reasonColumn)
	logs, least, n := map[string]float64{}, map[string]float64{}, 0
	for _, row := range found {
		p := by[row["program"]]
		cells := []string{p.Name, study.Ratio(row["instructions"], "1000", 0), p.PaperValue("trace")}
		for _, key := range []string{"detection", "slicing", "simplification", "symbolic"} {
			cells = append(cells, row[key], p.PaperValue(key))
		}
		for _, key := range faster {
			times := timesAsFast(row, p, key)
			cells = append(cells, times)
			if v, ok := study.Number(times); ok {
				logs[key] += math.Log(v)
				if l, known := least[key]; !known || v < l {
					least[key] = v
				}
			}
		}
		if row["instructions"] != "-" {
			n++
		}
		t.Rows = append(t.Rows, append(cells, rowRemark(row, p)))
	}
	t.Notes = []string{
		"Processor seconds on one host, the garbage collector's included; the paper's are of a Xeon of 2.67 GHz. \"Symbolic\" has the emulated machine in it, and all arguments are symbols, from which the stand-ins compute their data; \"races\" those that the order of operations leaves open.",
		"\"Times as fast\" is per thousand instructions of a trace: ours are of x86, the C library's and the dynamic linker's included, the paper's of LLVM.",
	}
	for _, key := range faster {
		if n > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: %.0f times as fast in the geometric mean, %.1f at the least.", key, math.Exp(logs[key]/float64(n)), least[key]))
		}
	}
	return t
})

// timesAsFast is how many times as fast an analysis is as the paper's, per instruction.
func timesAsFast(row map[string]string, p *study.ProgramStudy, key string) string {
	theirs := study.Ratio(p.PaperValue(key), p.PaperValue("trace"), 9)
	ours := study.Ratio(row[key], study.Ratio(row["instructions"], "1000", 3), 12)
	return study.Ratio(theirs, ours, 1)
}

// rowRemark is why a row differs, or why it was not measured.
func rowRemark(row map[string]string, p *study.ProgramStudy) string {
	if row["remark"] != "" {
		return row["remark"]
	}
	return p.Why
}

// table5 is how many branches that depend on input each analysis leaves.
var table5 = analysisArtefact("table5", "Table 5: effectiveness of the analyses", nil, func(found []map[string]string, by map[string]*study.ProgramStudy) *table.Table {
	columns := []table.Column{
		{Name: "UB", Key: "branches"}, {Name: "slicing", Key: "plain"}, {Name: "slicing + sim", Key: "simplified"}, {Name: "LB", Key: "lower"},
	}
	t := &table.Table{
		Head: append(append([]table.Column{{Name: "program", Key: "program"}}, study.WithPaperColumns(columns...)...),
			table.Column{Name: "TERN's", Key: "tern", Number: true}, table.Column{Name: "kept for", Key: "reasons"}, reasonColumn),
		Notes: []string{
			"Branches that depend on input: of the whole trace (UB), in the slice without and with schedule-guided simplification, and required to reach the recorded operations (LB; it ignores data). \"TERN's\" are those that TERN's pruning by post-dominators keeps (section 7.4 there), which the paper does not count.",
			"Inputs are the arguments, the seed of the data among them; jumps to addresses that depend on input count as branches.",
			"\"Kept for\" has the most frequent reasons for which slicing with simplification keeps constraints, with their numbers (docs/slicing.md): what is executed instead of a side may write memory that the slice reads, race, not come back; a function of a library decides; an address is kept. Ours differ from the paper's where aliases are less precise, and in that branches of the C library's mathematics count.",
		},
	}
	for _, row := range found {
		p := by[row["program"]]
		cells := []string{p.Name}
		for _, c := range columns {
			cells = append(cells, row[c.Key], p.PaperValue(c.Key))
		}
		t.Rows = append(t.Rows, append(cells, row["tern"], row["reasons"], rowRemark(row, p)))
	}
	return t
})

// figure14 is how much of a trace is in its slice.
var figure14 = analysisArtefact("figure14", "Figure 14: slicing ratio", &sheet.Chart{
	Kind: plots.Bars, Y: plots.Axis{Title: "slice, in parts of the trace"}, Columns: []string{"plain", "simplified"},
	Reported: []sheet.Reported{{Of: "plain", Paper: "paper_plain"}},
},
	func(found []map[string]string, by map[string]*study.ProgramStudy) *table.Table {
		t := &table.Table{
			Head: []table.Column{
				{Name: "program", Key: "program"},
				{Name: "slicing", Key: "plain", Number: true},
				{Name: "paper", Key: "paper_plain"},
				{Name: "slicing + sim", Key: "simplified", Number: true},
				{Name: "paper", Key: "paper_simplified"},
				reasonColumn,
			},
			Notes: []string{"Instructions in the slice, in parts of those of the trace. The paper's figure is a plot: its text says of which programs slicing alone leaves more than half, and where simplification vastly reduces that."},
		}
		for _, row := range found {
			p := by[row["program"]]
			t.Rows = append(t.Rows, []string{p.Name, row["ratio_plain"], p.PaperValue("ratio_plain"), row["ratio_simplified"], p.PaperValue("ratio_simplified"), rowRemark(row, p)})
		}
		return t
	})
