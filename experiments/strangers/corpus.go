package strangers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/heddle-dmt/heddle/experiments/sweep"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
)

// Corpus is a set of programs with the means to run them.
type Corpus struct {
	// Limits are the budget of a cell.
	Limits Limits `mapstructure:"limits"`
	// Enforced is the number of runs under a schedule, and Others the number of inputs besides the
	// memoized one.
	Enforced int `mapstructure:"enforced"`
	Others   int `mapstructure:"others"`
	// Recipes make the inputs of programs, by the names of the recipes.
	Recipes  map[string]Recipe `mapstructure:"recipes"`
	Programs []Program         `mapstructure:"programs"`
}

// Limits bound what the processes of a cell may take.
type Limits struct {
	// Seconds are the processor time of all processes of a cell.
	Seconds int `mapstructure:"seconds" positive:"true"`
	// Memory is the resident memory of a process.
	Memory job.Size `mapstructure:"memory" positive:"true"`
}

// Recipe makes the files of a folder: first those that are generated, then those that a shell script makes,
// which gets the variables SEED and SIZE.
type Recipe struct {
	// Files are the kinds of contents of generated files (sweep.GeneratorNames), by the files' names.
	Files  map[string]string `mapstructure:"files"`
	Script string            `mapstructure:"script"`
}

// Program is a program of Debian.
type Program struct {
	Name string `mapstructure:"name"`
	// Packages are the Debian packages that it needs.
	Packages []string `mapstructure:"packages"`
	// Language is that of its source, and Threads the library by which it makes threads.
	Language string `mapstructure:"language"`
	Threads  string `mapstructure:"threads"`
	// File is the name or path of the executable, and Arguments are its arguments.
	File      string   `mapstructure:"file"`
	Arguments []string `mapstructure:"arguments"`
	// Stdin is the file that is standard input, or empty.
	Stdin string `mapstructure:"stdin"`
	// Recipe makes the inputs, of the sizes Small and Large.
	Recipe string   `mapstructure:"recipe"`
	Small  job.Size `mapstructure:"small" positive:"true"`
	Large  job.Size `mapstructure:"large" positive:"true"`
	// CPU is the level of the emulated processor, if not the default one: of programs that need more, or
	// whose floating-point results depend on it.
	CPU string `mapstructure:"cpu"`
	// Filter is a shell command that removes from the output what varies on the host. Empty: nothing does.
	Filter string `mapstructure:"filter"`
}

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Load reads and checks a corpus.
func Load(path string) (*Corpus, error) {
	c := &Corpus{Limits: Limits{Seconds: 60, Memory: 3 << 30}, Enforced: 20, Others: 5}
	file, err := yamlfile.Load(path, c)
	if err != nil {
		return nil, err
	}
	return c, c.check(file)
}

// check returns the first field that is wrong.
func (c *Corpus) check(f *yamlfile.File) error {
	if len(c.Programs) == 0 {
		return f.Wrong("programs", "missing", "a list of programs")
	}
	if c.Enforced < 1 || c.Others < 1 {
		return f.Wrong("enforced", c.Enforced, "1 or more, and so is others")
	}
	for name, r := range c.Recipes {
		for file, kind := range r.Files {
			if !slices.Contains(sweep.GeneratorNames(), kind) {
				return f.Wrong("recipes."+name+".files."+file, kind, fmt.Sprint(sweep.GeneratorNames()))
			}
		}
	}
	seen := map[string]bool{}
	for i, p := range c.Programs {
		field := fmt.Sprintf("programs[%d].", i)
		if !nameForm.MatchString(p.Name) || seen[p.Name] {
			return f.Wrong(field+"name", fmt.Sprintf("%q", p.Name), "a name of its own, of small letters, digits and hyphens")
		}
		seen[p.Name] = true
		if p.File == "" {
			return f.Wrong(field+"file", "missing", "the program's file")
		}
		if len(p.Packages) == 0 {
			return f.Wrong(field+"packages", "missing", "the Debian packages of the program")
		}
		if _, known := c.Recipes[p.Recipe]; !known {
			return f.Wrong(field+"recipe", fmt.Sprintf("%q", p.Recipe), "a name under recipes")
		}
		if p.Small == 0 || p.Large == 0 {
			return f.Wrong(field+"small", p.Small, "sizes small and large")
		}
	}
	return nil
}

// key identifies everything in the corpus on which a cell depends.
func (c *Corpus) key(p Program, column Column) (string, error) {
	text, err := json.Marshal(struct {
		Program          Program
		Recipe           Recipe
		Enforced, Others int
		Column           string
	}{p, c.Recipes[p.Recipe], c.Enforced, c.Others, column.Name})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}
