// Package yamlfile reads configuration files strictly: every error names the
// file, the line, the field, the value found there and the allowed ones.
//
// viper does the reading and merges in the values that override the file's,
// such as those of command-line flags. Beside it the file is parsed into yaml.v3 nodes, which know their
// lines, and checked against the Go type that it is to fill: unknown fields and
// values of the wrong kind are errors. Rules that a type cannot
// express (ranges, names that must exist) its owner checks after loading and
// reports through File.Wrong, which finds the line of a field.
//
// How a type is read:
//
//   - struct: a mapping with the fields' mapstructure names
//   - map: a mapping with any lower-case names (viper folds case)
//   - slice: a sequence; a single value stands for a sequence of one
//   - a type with UnmarshalText, or string, number, bool: a scalar
//
// A number whose zero value stands for a default has the tag positive:"true": the default is
// got by leaving the field out, and an explicit 0 is an error.
package yamlfile

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/viper"
	"gopkg.in/yaml.v3"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/infile"
)

var (
	errRead = errs.Define("yaml-unreadable",
		"cannot read the configuration file {file}",
		"The file does not exist, is a folder, or may not be read.",
		"Check the name; `heddle experiment init` writes an example to start from.")
	errSyntax = errs.Define("yaml-syntax",
		"{file}:{line}: not valid YAML: {problem}",
		"The file cannot be parsed: often a missing colon, a tab used for indentation, or an unclosed quote or bracket.",
		"Mend the line; indentation is made of spaces.")
	errUnknown = errs.Define("yaml-unknown-field",
		"{file}:{line}: unknown field {field}; allowed here: {names}",
		"A field's name is misspelt, or the field stands at the wrong level of indentation.",
		"Use one of the names that the sentence lists.")
	errWrong = errs.Define("yaml-wrong-value",
		"{file}:{line}: {field} is {found}; allowed: {allowed}",
		"The field's value is of the wrong kind or out of range.",
		"Use a value that the sentence allows.")
	errDecode = errs.Define("settings-wrong",
		"the settings cannot be used",
		"A command-line flag or a value of the configuration file does not fit its field.",
		"Correct the field that the rest of the sentence names.")
)

// File is a configuration file that was read, for reporting what is wrong with
// a field of it.
type File struct {
	path string
	root *yaml.Node // nil for an empty file
}

// Load fills *into, a pointer to a struct, from the file. Fields that the file
// does not name keep their values; slices should be nil before.
func Load(path string, into any) (*File, error) { return LoadBound(path, into, nil) }

// LoadBound is Load with values that override the file's: override sets fields
// of v, named by their path ("sched.policy"). An empty path stands for no file.
func LoadBound(path string, into any, override func(v *viper.Viper)) (*File, error) {
	var data []byte
	if path != "" {
		var err error
		if data, err = infile.ReadSmall(path); err != nil {
			return nil, errRead.Wrap(cause(err), path)
		}
	}
	return parse(path, data, into, override)
}

// Parse is Load from bytes; the path only serves in errors.
func Parse(path string, data []byte, into any) (*File, error) { return parse(path, data, into, nil) }

func parse(path string, data []byte, into any, override func(v *viper.Viper)) (*File, error) {
	f, err := parseNodes(path, data)
	if err != nil {
		return nil, err
	}
	if f.root != nil {
		if err := f.check(f.root, reflect.TypeOf(into).Elem(), ""); err != nil {
			return nil, err
		}
	}
	v := viper.New()
	v.SetConfigType("yaml")
	if err := v.ReadConfig(bytes.NewReader(data)); err != nil {
		return nil, f.syntax(err)
	}
	if override != nil {
		override(v)
	}
	if err := v.UnmarshalExact(into, viper.DecodeHook(textHook)); err != nil {
		return nil, errDecode.Wrap(oneLine(err))
	}
	return f, nil
}

// textHook decodes scalars into types with UnmarshalText.
func textHook(_, to reflect.Type, data any) (any, error) {
	if !isText(to) || !isScalar(reflect.TypeOf(data)) {
		return data, nil
	}
	result := reflect.New(to)
	err := result.Interface().(encoding.TextUnmarshaler).UnmarshalText(fmt.Append(nil, data))
	return result.Elem().Interface(), err
}

func isScalar(t reflect.Type) bool {
	if t == nil {
		return false
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Struct, reflect.Pointer:
		return false
	}
	return true
}

func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// oneLine makes a sentence of the decoder's list of errors.
func oneLine(err error) error {
	_, list, found := strings.Cut(err.Error(), "error(s):")
	if !found {
		list = err.Error()
	}
	return errors.New(strings.Join(strings.Fields(list), " "))
}

func cause(err error) error {
	var e *os.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func parseNodes(path string, data []byte) (*File, error) {
	f := &File{path: path}
	// The decoder into plain values refuses documents that the node parser accepts:
	// anchors that contain themselves and aliases that explode.
	var plain any
	if err := yaml.Unmarshal(data, &plain); err != nil {
		return nil, f.syntax(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if decoder.Decode(&document) != nil {
		return f, nil // empty
	}
	if decoder.Decode(&second) == nil {
		return nil, f.wrong(&second, "the file", "more than one document", "a single document")
	}
	if len(document.Content) > 0 && document.Content[0].Tag != "!!null" {
		f.root = document.Content[0]
	}
	return f, nil
}

var yamlLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^yaml: (?:unmarshal errors:\n\s*)?(?:line (\d+): )?`)
})

// syntax reports an error of the YAML parser, whose text begins with a line.
func (f *File) syntax(err error) error {
	text := strings.TrimPrefix(err.Error(), "While parsing config: ")
	line := "1"
	if m := yamlLine().FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if m[1] != "" {
			line = m[1]
		}
	}
	return errSyntax.New(f.path, line, strings.Join(strings.Fields(text), " "))
}

// Wrong reports that the value of a field is not allowed. The field is a path
// like "programs[2].command"; the line is that of the field or of the nearest
// enclosing one that the file has.
func (f *File) Wrong(field string, found any, allowed string) error {
	return f.wrong(f.find(field), field, found, allowed)
}

func (f *File) wrong(n *yaml.Node, field string, found any, allowed string) error {
	line := 1
	if n != nil {
		line = n.Line
	}
	return errWrong.New(f.path, line, field, found, allowed)
}

// find returns the deepest node on the path to a field, or nil.
func (f *File) find(field string) *yaml.Node {
	n := f.root
	for _, step := range strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := child(n, step)
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

func child(n *yaml.Node, step string) *yaml.Node {
	n = resolve(n)
	if n == nil {
		return nil
	}
	if n.Kind == yaml.SequenceNode {
		var i int
		if _, err := fmt.Sscan(step, &i); err != nil || i < 0 || i >= len(n.Content) {
			return nil
		}
		return n.Content[i]
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == step {
			return n.Content[i+1]
		}
	}
	return nil
}

func resolve(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// check compares the node with the type that it is to fill.
func (f *File) check(n *yaml.Node, t reflect.Type, field string) error {
	n = resolve(n)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Tag == "!!null" {
		return nil
	}
	if isText(t) {
		return f.checkText(n, t, field)
	}
	switch t.Kind() {
	case reflect.Struct:
		return f.checkStruct(n, t, field)
	case reflect.Map:
		return f.checkMap(n, t, field)
	case reflect.Slice:
		return f.checkSlice(n, t, field)
	}
	return f.checkScalar(n, t, field)
}

func (f *File) checkText(n *yaml.Node, t reflect.Type, field string) error {
	if n.Kind != yaml.ScalarNode {
		return f.wrong(n, field, describe(n), "a single value")
	}
	value := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	if err := value.UnmarshalText([]byte(n.Value)); err != nil {
		return f.wrong(n, field, describe(n), err.Error())
	}
	return nil
}

func (f *File) checkStruct(n *yaml.Node, t reflect.Type, field string) error {
	fields := fieldsOf(t)
	return f.eachField(n, field, func(key, value *yaml.Node) error {
		i := slices.IndexFunc(fields, func(s reflect.StructField) bool { return nameOf(s) == key.Value })
		if i < 0 {
			return errUnknown.New(f.path, key.Line, join(field, key.Value), strings.Join(names(fields), ", "))
		}
		if err := f.check(value, fields[i].Type, join(field, key.Value)); err != nil {
			return err
		}
		if fields[i].Tag.Get("positive") == "true" {
			return f.checkPositive(value, fields[i].Type, join(field, key.Value))
		}
		return nil
	})
}

// checkPositive refuses a number that is 0. It has been checked against its type.
func (f *File) checkPositive(n *yaml.Node, t reflect.Type, field string) error {
	n = resolve(n)
	number := reflect.New(t)
	if n.Tag == "!!null" || n.Decode(number.Interface()) != nil || !number.Elem().IsZero() {
		return nil
	}
	allowed := "a whole number from 1 on"
	if number.Elem().CanFloat() {
		allowed = "a number above 0"
	}
	return f.wrong(n, field, n.Value, allowed)
}

func (f *File) checkMap(n *yaml.Node, t reflect.Type, field string) error {
	return f.eachField(n, field, func(key, value *yaml.Node) error {
		if key.Value != strings.ToLower(key.Value) || strings.ContainsAny(key.Value, ".[]{} ") {
			return f.wrong(key, "the name of "+join(field, key.Value), describe(key), "lower-case words without dots, brackets and spaces")
		}
		return f.check(value, t.Elem(), join(field, key.Value))
	})
}

// eachField visits the fields of a mapping, also the merged ones.
func (f *File) eachField(n *yaml.Node, field string, visit func(key, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return f.wrong(n, orFile(field), describe(n), "a mapping of fields")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			if err := f.merge(value, field, visit); err != nil {
				return err
			}
			continue
		}
		if err := visit(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) merge(value *yaml.Node, field string, visit func(key, value *yaml.Node) error) error {
	value = resolve(value)
	if value.Kind != yaml.SequenceNode {
		return f.eachField(value, field, visit)
	}
	for _, item := range value.Content {
		if err := f.eachField(resolve(item), field, visit); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) checkSlice(n *yaml.Node, t reflect.Type, field string) error {
	if n.Kind != yaml.SequenceNode {
		if n.Kind == yaml.MappingNode {
			return f.wrong(n, field, describe(n), "a list")
		}
		return f.check(n, t.Elem(), field)
	}
	for i, item := range n.Content {
		name := fmt.Sprintf("%s[%d]", field, i)
		if resolve(item).Tag == "!!null" {
			return f.wrong(item, name, "empty", "a value")
		}
		if err := f.check(item, t.Elem(), name); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) checkScalar(n *yaml.Node, t reflect.Type, field string) error {
	allowed := kindName(t)
	if n.Kind != yaml.ScalarNode {
		return f.wrong(n, field, describe(n), allowed)
	}
	if t.Kind() == reflect.String {
		return nil
	}
	// yaml.v3 would cut 1.5 down to an integer, hence the look at the tag.
	whole := t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64
	if whole && n.ShortTag() != "!!int" || n.Decode(reflect.New(t).Interface()) != nil {
		return f.wrong(n, field, describe(n), allowed)
	}
	return nil
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number, not negative"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a single value"
}

// describe names the kind of a node, in an error.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%.60q", n.Value)
}

func orFile(field string) string {
	if field == "" {
		return "the file"
	}
	return field
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// fieldsOf lists the fields that a file may name, those of embedded structs
// that are squashed included.
func fieldsOf(t reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	for i := range t.NumField() {
		field := t.Field(i)
		switch tag := field.Tag.Get("mapstructure"); {
		case strings.HasSuffix(tag, ",squash"):
			fields = append(fields, fieldsOf(field.Type)...)
		case tag != "-" && field.IsExported():
			fields = append(fields, field)
		}
	}
	return fields
}

func nameOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("mapstructure"), ",")
	if name == "" {
		return strings.ToLower(field.Name)
	}
	return name
}

func names(fields []reflect.StructField) []string {
	all := make([]string, len(fields))
	for i, field := range fields {
		all[i] = nameOf(field)
	}
	return all
}
