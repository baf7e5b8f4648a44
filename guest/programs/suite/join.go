package suite

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/internal/gcc"
)

// joint is the main function of a program that runs others side by side, each in a
// thread of its own, with the arguments up to the next "--". Its status is that of the
// first that does not end with 0.
const joint = `#include <pthread.h>
#include <stddef.h>
#include <string.h>
%s
static int (*const mains[])(int, char **) = {%s};
enum { PARTS = sizeof mains / sizeof *mains };
static struct { int count, status; char **arguments; } parts[PARTS];
static void *run(void *part)
{
	size_t i = (size_t)part;
	parts[i].status = mains[i](parts[i].count, parts[i].arguments);
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t threads[PARTS];
	int at = 0;
	for (size_t i = 0; i < PARTS; i++) {
		int first = at++;
		while (at < argc && strcmp(argv[at], "--") != 0)
			at++;
		parts[i].count = at - first;
		parts[i].arguments = argv + first;
		argv[at < argc ? at : argc] = NULL;
	}
	for (size_t i = 1; i < PARTS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)i) != 0)
			return 3;
	run(NULL);
	for (size_t i = 1; i < PARTS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < PARTS; i++)
		if (parts[i].status != 0)
			return parts[i].status;
	return 0;
}
`

// Join compiles programs into one that runs them side by side, the first one in its
// main thread: several bugs in one run. On its command line their arguments stand one
// after the other, with "--" between them.
func Join(v Variant, names ...string) (string, error) {
	var declared, listed []string
	var sources []gcc.Source
	args := v.flags()
	links := []string{"-lm"}
	for i, name := range names {
		p, err := Find(name)
		if err != nil {
			return "", err
		}
		if !p.Has(v.Form) {
			return "", fmt.Errorf("join %s: it has no %s form", name, v.Form)
		}
		files, err := p.files()
		if err != nil {
			return "", err
		}
		main := fmt.Sprintf("main%d", i)
		declared, listed = append(declared, "int "+main+"(int, char **);"), append(listed, main)
		part := fmt.Sprintf("#define main %s\n#include \"%s\"\n", main, path.Join(p.Folder, p.Name+".c"))
		sources = append(append(sources, files...), gcc.Source{Path: main + ".c", Text: []byte(part)})
		args, links = append(args, main+".c"), append(slices.Clone(p.Link), links...)
	}
	text := fmt.Sprintf(joint, strings.Join(declared, "\n"), strings.Join(listed, ", "))
	name := strings.Join(names, "+")
	return gcc.Build{
		Cache: "heddle-programs", Name: name, Label: v.label(), Args: append(append(args, "joint.c"), links...),
		Sources: append(sources, gcc.Source{Path: "joint.c", Text: []byte(text)}),
	}.Make()
}

// Around compiles a program of another source, which includes the program's own
// ("scanner/scanner.c").
func (p Program) Around(v Variant, name, source string) (string, error) {
	files, err := p.files()
	if err != nil {
		return "", err
	}
	args := append(append(v.flags(), name+".c"), p.Link...)
	return gcc.Build{
		Cache: "heddle-programs", Name: name, Label: v.label(), Args: append(args, "-lm"),
		Sources: append(files, gcc.Source{Path: name + ".c", Text: []byte(source)}),
	}.Make()
}
