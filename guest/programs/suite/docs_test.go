package suite

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents have the tables, each between two comments.
var documents = []string{"../../../docs/programs.md", "../../../docs/program-bugs.md", "../../../docs/program-origins.md"}

// TestDocs compares the tables of the documents with their sources: program.yaml of
// each program and measured.json.
func TestDocs(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	m := loadMeasured(t)
	tables := map[string]string{
		"kernels": kernelTable(all, m), "bugs": bugTable(all), "sweep": sweepTable(all, m),
		"races": raceTable(all), "memory": memoryTable(all), "synchronization": syncTable(all, m),
		"origins": originTable(all),
	}
	place := regexp.MustCompile(`(?s)<!-- table (\w+) -->\n.*?<!-- end -->`)
	seen := map[string]int{}
	for _, document := range documents {
		old, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		text := place.ReplaceAllStringFunc(string(old), func(found string) string {
			name := place.FindStringSubmatch(found)[1]
			seen[name]++
			return "<!-- table " + name + " -->\n" + tables[name] + "<!-- end -->"
		})
		switch {
		case text == string(old):
		case !*update:
			t.Errorf("%s is not up to date; run the test with -update", document)
		default:
			if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name := range tables {
		if seen[name] != 1 {
			t.Errorf("the table %s is in %d places of %v", name, seen[name], documents)
		}
	}
	for name := range seen {
		if tables[name] == "" {
			t.Errorf("there is no table %s", name)
		}
	}
}

// table makes a table in Markdown.
func table(head string, rows [][]string) string {
	var b strings.Builder
	columns := strings.Split(head, ", ")
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
	for _, r := range rows {
		for i := range r {
			r[i] = strings.ReplaceAll(r[i], "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r, " | "))
	}
	return b.String()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func names[T ~string](list []T) string {
	var words []string
	for _, w := range list {
		words = append(words, string(w))
	}
	return strings.Join(words, ", ")
}

var dependsOn = map[Output]string{Same: "input", Threads: "input, threads", Varies: "interleaving"}

func kernelTable(all []Program, m measured) string {
	var rows [][]string
	for _, p := range all {
		if p.Kind != Kernel && p.Kind != Tool && p.Kind != Stress {
			continue
		}
		size, unmeasured := m.Sizes[p.Name], "?"
		ms := func(v float64) string {
			if v == 0 {
				return unmeasured
			}
			return fmt.Sprintf("%.0f", v)
		}
		rows = append(rows, []string{
			p.Name, p.About, dependsOn[p.Output], code(p.Arguments.Test), ms(size.Test),
			code(p.Arguments.Small), ms(size.Small), code(p.Arguments.Paper),
		})
	}
	return table("program, what it does, output depends on, test, ms, small, ms, as in the papers", rows)
}

func bugTable(all []Program) string {
	var rows [][]string
	for _, p := range all {
		if p.Has(Buggy) && p.Kind != Memory && len(p.Outcomes) > 1 {
			rows = append(rows, []string{
				p.Name, p.StandsFor, p.Shows, names(p.Outcomes), code(p.Trigger()), code(strings.Join(p.Schedule, " ")),
			})
		}
	}
	return table("program, stands for, the bug shows, outcomes, trigger, best schedule", rows)
}

// sweepTable has a column for each schedule of the sweep. The length of pct
// differs from program to program.
func sweepTable(all []Program, m measured) string {
	var rows [][]string
	for _, p := range all {
		found, ok := m.Bugs[p.Name]
		if !ok {
			continue
		}
		row := []string{p.Name}
		best := slices.MaxFunc(found, func(a, b shown) int { return a.total() - b.total() })
		for _, s := range found {
			cell := fmt.Sprint(s.total())
			if s.Schedule == best.Schedule {
				cell = "**" + cell + "**"
			}
			row = append(row, cell)
		}
		var outcomes []string
		for _, o := range slices.Sorted(maps.Keys(best.Outcomes)) {
			outcomes = append(outcomes, fmt.Sprintf("%s %d", o, best.Outcomes[o]))
		}
		rows = append(rows, append(row, fmt.Sprint(best.First), strings.Join(outcomes, ", ")))
	}
	head := []string{"program"}
	for _, s := range sweeps {
		head = append(head, strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(s, " --length LENGTH"), "--sched "), "--", ""))
	}
	return table(strings.Join(append(head, "first seed of the best", "its outcomes"), ", "), rows)
}

func raceTable(all []Program) string {
	var rows [][]string
	for _, p := range all {
		for _, r := range p.Races {
			rows = append(rows, []string{p.Name, r.Object, string(r.Kind), strings.Join(r.Lines, " "), r.Why})
		}
	}
	return table("program, object, kind, lines, why", rows)
}

func memoryTable(all []Program) string {
	var rows [][]string
	for _, p := range all {
		if p.Kind == Memory {
			rows = append(rows, []string{p.Name, p.StandsFor, names(p.Models), p.Shows, code(p.Arguments.Test)})
		}
	}
	return table("program, stands for, can fail under, the failure, test", rows)
}

func syncTable(all []Program, m measured) string {
	var rows [][]string
	for _, p := range all {
		s := p.Synchronization
		if s == nil {
			continue
		}
		last := s.Cases[len(s.Cases)-1]
		for i, c := range m.Synchronization[p.Name] {
			row := []string{"", "", fmt.Sprint(c.Threads)}
			if i == 0 {
				row[0], row[1] = p.Name, code(last.Arguments)
			}
			for _, n := range []counts{c.Formula, c.Native, c.Heddle} {
				row = append(row, fmt.Sprintf("%.0f / %.1f / %.1f", n.Barriers, n.Locks, n.Waits))
			}
			original := ""
			if i == 0 {
				original = s.Original
			}
			rows = append(rows, append(row, original))
		}
	}
	return table("program, arguments, threads, formula, natively, under heddle, the original", rows)
}

func originTable(all []Program) string {
	var rows [][]string
	for _, p := range all {
		rows = append(rows, []string{p.Name, p.StandsFor, p.Keeps, p.LeavesOut, p.Source})
	}
	return table("program, stands for, keeps, leaves out, source", rows)
}
