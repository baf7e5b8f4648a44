// Package servers describes a server with the client that loads it, in a file, and makes of it the command of one run: a
// shell script that starts the server, waits until it is ready, lets the client work, stops the server,
// and prints one sentence if anything went wrong.
//
// Server and client are processes of one machine. The first cores of the machine are the server's, and further ones
// the client's: with an affinity of each process (taskset), no client takes time from
// the server. The script itself runs on the client's cores.
package servers

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/internal/shellword"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
)

// Server is a file that describes a server and its client. In every text of it, a name in braces that Values gives is
// replaced, and so are {port}, {cores} (of the server) and {folder}.
type Server struct {
	// Name stands for the server; the default is the file's name.
	Name string `mapstructure:"name"`
	// Needs are the programs that the host must have, as patterns of paths, and Packages the Debian packages with them.
	Needs    []string `mapstructure:"needs"`
	Packages []string `mapstructure:"packages"`
	// Port is the TCP port that the server listens on.
	Port uint16 `mapstructure:"port"`
	// Files are written into the server's folder, its working folder, before Prepare.
	Files []File `mapstructure:"files"`
	// Prepare is a shell script that runs before the server, and Load one that runs when it is ready, such as to
	// fill a database. Both run as User.
	Prepare string `mapstructure:"prepare"`
	Load    string `mapstructure:"load"`
	// User is the user of the server when the guest's user is root; empty means root.
	User string `mapstructure:"user"`
	// Command starts the server, in the foreground.
	Command []string `mapstructure:"command"`
	// Ready is a command that succeeds when the server is ready; the default is that its port accepts a
	// connection.
	Ready []string `mapstructure:"ready"`
	// Client is the command that loads the server.
	Client []string `mapstructure:"client"`
	// Limit is how many seconds of virtual time the client may take; the run fails if it takes longer, such as
	// when client and server wait for each other.
	Limit int `mapstructure:"limit"`
	// Clients is the name of the processes whose requests are measured; the default is the client's program.
	Clients string `mapstructure:"clients"`
	// Replies are extended regular expressions (grep -E) that lines of the client's standard output must match, such
	// as a count of replies that were right.
	Replies []string `mapstructure:"replies"`
	// Stop ends the server: the name of a signal, or a command of more words. The default is TERM.
	Stop []string `mapstructure:"stop"`
	// Status is the exit status of a server that was stopped.
	Status int `mapstructure:"status"`
	// ClientCores is the number of the machine's cores that are the client's alone. With 0 it
	// shares the server's.
	ClientCores int `mapstructure:"client_cores"`
	// Values are the values of names in braces, unless the experiment's grid gives others.
	Values map[string]string `mapstructure:"values"`
}

// File is a file in the server's folder.
type File struct {
	Name    string `mapstructure:"name"`
	Content string `mapstructure:"content"`
}

// Folder is the server's folder in the guest.
const Folder = "/tmp/server"

// Shell is the program that runs a server's script.
const Shell = "/bin/sh"

// Load reads and checks a server's file. A client takes the place of the file's, unless it is empty.
func Load(path string, client ...string) (*Server, error) {
	s := &Server{ClientCores: 2, Limit: 600}
	file, err := yamlfile.Load(path, s)
	if err != nil {
		return nil, err
	}
	if len(client) > 0 {
		s.Client = client
	}
	base := filepath.Base(path)
	s.Name = cmp.Or(s.Name, strings.TrimSuffix(base, filepath.Ext(base)))
	if len(s.Stop) == 0 {
		s.Stop = []string{"TERM"}
	}
	if s.Clients == "" && len(s.Client) > 0 {
		s.Clients = filepath.Base(s.Client[0])
	}
	if err := s.check(file); err != nil {
		return nil, err
	}
	return s, nil
}

// maxCommand is the length of a process's name (comm).
const maxCommand = 15

// check returns an error about the first field of the file that is wrong.
func (s *Server) check(file *yamlfile.File) error {
	wrong := func(field string, found any, allowed string) error {
		if text, ok := found.(string); ok {
			found = strconv.Quote(text)
		}
		return file.Wrong(field, found, allowed)
	}
	switch {
	case s.Port == 0:
		return wrong("port", s.Port, "the TCP port that the server listens on, 1 to 65535")
	case len(s.Command) == 0:
		return wrong("command", "", "a list of the server's program and its arguments")
	case len(s.Client) == 0:
		return wrong("client", "", "a list of the client's program and its arguments")
	case len(s.Clients) > maxCommand:
		return wrong("clients", s.Clients, "the name of the client's processes, at most 15 bytes as Linux has it")
	case s.ClientCores < 0 || s.ClientCores > 63:
		return wrong("client_cores", s.ClientCores, "0 to 63")
	case s.Limit < 1 || s.Limit > 1_000_000:
		return wrong("limit", s.Limit, "1 to 1000000 seconds")
	case s.Status < 0 || s.Status > 255:
		return wrong("status", s.Status, "0 to 255")
	}
	for i, f := range s.Files {
		if f.Name == "" || strings.HasPrefix(f.Name, "/") || slices.Contains(strings.Split(f.Name, "/"), "..") {
			return wrong(fmt.Sprintf("files[%d].name", i), f.Name, "a path in the server's folder")
		}
	}
	for field, words := range map[string][]string{"command": s.Command, "ready": s.Ready, "client": s.Client, "replies": s.Replies, "stop": s.Stop} {
		for i, word := range words {
			if name := s.unknownName(word); name != "" {
				return wrong(fmt.Sprintf("%s[%d]", field, i), word, "names in braces that values gives, or port, cores, folder")
			}
		}
	}
	return nil
}

var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{([a-z][a-z0-9_-]*)\}`) })

// builtinNames are the names in braces that every server has.
var builtinNames = []string{"port", "cores", "folder"}

// unknownName returns a name in braces of the word that has no value, or empty.
func (s *Server) unknownName(word string) string {
	for _, match := range placeholder().FindAllStringSubmatch(word, -1) {
		if _, known := s.Values[match[1]]; !known && !slices.Contains(builtinNames, match[1]) {
			return match[1]
		}
	}
	return ""
}

// Uses reports whether a name in braces is the server's own, so that an experiment can vary it.
func (s *Server) Uses(name string) bool {
	_, known := s.Values[name]
	return known
}

// Missing returns a pattern of Needs that no file of the host matches, or empty.
func (s *Server) Missing() string {
	for _, pattern := range s.Needs {
		if found, err := filepath.Glob(pattern); err != nil || len(found) == 0 {
			return pattern
		}
	}
	return ""
}

// MachineCores is the number of cores of a machine whose server has a number of them.
func (s *Server) MachineCores(cores int) int { return cores + s.ClientCores }

// Args is the command of a run in which the server has a number of cores. Values take the place of the
// server's.
func (s *Server) Args(cores int, values map[string]string) []string {
	pairs := []string{"{port}", strconv.Itoa(int(s.Port)), "{cores}", strconv.Itoa(cores), "{folder}", Folder}
	for name, value := range s.Values {
		if other, given := values[name]; given {
			value = other
		}
		pairs = append(pairs, "{"+name+"}", value)
	}
	return []string{Shell, "-c", s.script(cores, strings.NewReplacer(pairs...))}
}

// quoted writes the words of a command as a line of a shell.
func quoted(r *strings.Replacer, words []string) string {
	var list []string
	for _, word := range words {
		list = append(list, shellword.Quote(r.Replace(word)))
	}
	return strings.Join(list, " ")
}
