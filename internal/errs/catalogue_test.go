package errs

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/errors.md")

const (
	moduleRoot = "../.."
	document   = moduleRoot + "/docs/errors.md"
	importPath = "github.com/heddle-dmt/heddle/internal/errs"
)

// userFacing are the packages whose errors are printed as they are.
var userFacing = []string{".", "cmd/heddle", "cmd/heddle/command", "cmd/heddle/litmus", "cmd/heddle/traces", "experiments", "experiments/..."}

// source is one parsed non-test Go file of the module.
type source struct {
	path string // relative to the module root
	file *ast.File
	set  *token.FileSet
}

func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.set.Position(n.Pos()).Line)
}

func (s source) dir() string { return filepath.ToSlash(filepath.Dir(s.path)) }

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(moduleRoot, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != moduleRoot && (strings.HasPrefix(name, ".") || name == "testdata" || name == "tools") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(moduleRoot, path)
		if err != nil {
			return err
		}
		all = append(all, source{path: rel, file: file, set: set})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// definition is one Define call.
type definition struct {
	Kind
	where    string
	dir      string // package folder
	variable string
}

func definitions(t *testing.T, all []source) []definition {
	t.Helper()
	var found []definition
	for _, s := range all {
		if !imports(s.file, importPath) {
			continue
		}
		calls := 0
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isCall(call, "errs", "Define") {
				calls++
			}
			return true
		})
		for _, decl := range s.file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				for i, expr := range value.Values {
					call, ok := expr.(*ast.CallExpr)
					if !ok || !isCall(call, "errs", "Define") {
						continue
					}
					calls--
					d := definition{where: s.at(call), dir: s.dir(), variable: value.Names[i].Name}
					fields := []*string{&d.id, &d.sentence, &d.cause, &d.cure}
					if len(call.Args) != len(fields) {
						t.Errorf("%s: Define takes %d arguments", d.where, len(fields))
						continue
					}
					for j, arg := range call.Args {
						*fields[j] = literal(t, s, arg)
					}
					found = append(found, d)
				}
			}
		}
		if calls != 0 {
			t.Errorf("%s: Define is called elsewhere than as the value of a package-level variable", s.path)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].id < found[j].id })
	return found
}

func imports(file *ast.File, path string) bool {
	for _, spec := range file.Imports {
		if spec.Path.Value == strconv.Quote(path) {
			return true
		}
	}
	return false
}

func isCall(call *ast.CallExpr, pkg, name string) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	ident, ok := selector.X.(*ast.Ident)
	return ok && ident.Name == pkg
}

// literal evaluates a string literal or a sum of them.
func literal(t *testing.T, s source, expr ast.Expr) string {
	t.Helper()
	switch e := expr.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err == nil {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return literal(t, s, e.X) + literal(t, s, e.Y)
		}
	}
	t.Errorf("%s: Define takes string literals", s.at(expr))
	return ""
}

func TestDefinitionsAreWellFormed(t *testing.T) {
	id := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	whole := regexp.MustCompile(`(?s)^([A-Z0-9/]|heddle ).*\.$`)
	seen := map[string]string{}
	for _, d := range definitions(t, sources(t)) {
		if !id.MatchString(d.id) {
			t.Errorf("%s: id %q is not lower case words joined by hyphens", d.where, d.id)
		}
		if first, ok := seen[d.id]; ok {
			t.Errorf("%s: id %q is already taken at %s", d.where, d.id, first)
		}
		seen[d.id] = d.where
		if d.sentence == "" || strings.HasSuffix(d.sentence, ".") || strings.Contains(d.sentence, "\n") {
			t.Errorf("%s: the sentence %q is empty, ends in a full stop or has a line break", d.where, d.sentence)
		}
		if !whole.MatchString(d.cause) || !whole.MatchString(d.cure) {
			t.Errorf("%s: cause %q and cure %q must be whole sentences", d.where, d.cause, d.cure)
		}
	}
}

// TestUses compares the number of values in each New and Wrap call with the
// sentence's placeholders, and finds sentences that nothing reports.
func TestUses(t *testing.T) {
	all := sources(t)
	defined := definitions(t, all)
	byName := map[string]definition{} // "dir.variable"
	for _, d := range defined {
		byName[d.dir+"."+d.variable] = d
	}
	used := map[string]bool{}
	for _, s := range all {
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				checkValues(t, s, n, byName)
			case *ast.Ident:
				used[s.dir()+"."+n.Name] = used[s.dir()+"."+n.Name] || !isDefinitionOf(n, s, byName)
			case *ast.SelectorExpr:
				for key, d := range byName {
					if pkg, ok := n.X.(*ast.Ident); ok && filepath.Base(d.dir) == pkg.Name && d.variable == n.Sel.Name {
						used[key] = true
					}
				}
			}
			return true
		})
	}
	for key, d := range byName {
		if !used[key] {
			t.Errorf("%s: nothing reports %q", d.where, d.id)
		}
	}
}

func isDefinitionOf(n *ast.Ident, s source, byName map[string]definition) bool {
	d, ok := byName[s.dir()+"."+n.Name]
	if !ok {
		return false
	}
	for _, decl := range s.file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range value.Names {
					if name == n && name.Name == d.variable {
						return true
					}
				}
			}
		}
	}
	return false
}

func checkValues(t *testing.T, s source, call *ast.CallExpr, byName map[string]definition) {
	t.Helper()
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || (method.Sel.Name != "New" && method.Sel.Name != "Wrap") || call.Ellipsis.IsValid() {
		return
	}
	kind, ok := method.X.(*ast.Ident)
	if !ok {
		return
	}
	d, ok := byName[s.dir()+"."+kind.Name]
	if !ok {
		return
	}
	values := len(call.Args)
	if method.Sel.Name == "Wrap" {
		values--
	}
	if want := len(Placeholders(d.sentence)); values != want {
		t.Errorf("%s: %s.%s gets %d values for %d placeholders", s.at(call), kind.Name, method.Sel.Name, values, want)
	}
}

// TestUserFacingErrorsAreCatalogued finds errors that would reach the user
// without a Kind.
func TestUserFacingErrorsAreCatalogued(t *testing.T) {
	for _, s := range sources(t) {
		if !isUserFacing(s.dir()) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if isCall(call, "errors", "New") {
				t.Errorf("%s: errors.New in a package whose errors the user sees: Define the sentence", s.at(call))
			}
			if isCall(call, "fmt", "Errorf") {
				if format, ok := call.Args[0].(*ast.BasicLit); !ok || !strings.Contains(format.Value, "%w") {
					t.Errorf("%s: fmt.Errorf without %%w in a package whose errors the user sees: Define the sentence", s.at(call))
				}
			}
			return true
		})
	}
}

func isUserFacing(dir string) bool {
	for _, pattern := range userFacing {
		prefix, tree := strings.CutSuffix(pattern, "/...")
		if dir == pattern || tree && strings.HasPrefix(dir, prefix+"/") {
			return true
		}
	}
	return false
}

func TestDocumentIsCurrent(t *testing.T) {
	want := render(definitions(t, sources(t)))
	if *update {
		if err := os.WriteFile(document, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/errors.md does not hold exactly the defined sentences; rewrite it with: go test ./internal/errs -update")
	}
}

func render(all []definition) []byte {
	var b bytes.Buffer
	b.WriteString(`# What heddle's error sentences mean

When heddle itself fails it prints one sentence, ` + "`heddle: ...`" + `, on standard error and
exits with status 125. This is every such sentence, with its cause and cure.
Words in braces stand for the values of the case at hand; a colon and the system's own
message may follow. The file is generated from the source
(` + "`go test ./internal/errs -update`" + `), and a test keeps it complete.
`)
	for _, d := range all {
		fmt.Fprintf(&b, "\n## %s\n\n`heddle: %s`\n\n- Cause: %s\n- Cure: %s\n", d.id, d.sentence, d.cause, d.cure)
	}
	return b.Bytes()
}
