package machine

import (
	"errors"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// The guest's clock starts at this second since 1970, and the files of the host
// show an earlier one: 1 January 2026 and the day before, UTC.
const (
	epochSeconds    = 1_767_225_600
	fileTimeSeconds = epochSeconds - 86_400
)

var (
	errFiles = errs.Define("files-cannot-be-set-up",
		"the guest's files cannot be set up",
		"A folder named by --rootfs, --mount or as the working folder cannot be opened; the rest of the sentence names it.",
		"Check that the folder exists and can be read.")

	errNotFound = errs.Define("program-not-found",
		"cannot run {program}: no such program in the guest's PATH ({path})",
		"The name has no slash, and no folder in PATH holds an executable file of that name.",
		"Install the program, correct the name, or give its path.")

	errExport = errs.Define("changes-cannot-be-written",
		"the guest's changes of files cannot be written to the host",
		"A file below a writable mount or the export folder cannot be created or replaced; the rest of the sentence names it.",
		"Free space on the disk, or correct the folder's permissions, and run again.")

	errInputs = errs.Define("input-cannot-be-hashed",
		"the manifest of the run's inputs cannot be made",
		"A file of the host that the guest read, or tried to read, changed meanwhile or cannot be read; the rest of the sentence names it.",
		"Run again while nothing else writes to the guest's input files.")

	errStdin = errs.Define("stdin-cannot-be-read",
		"the guest's standard input cannot be read",
		"The host's file or pipe cannot be examined.",
		"Name a readable file with --stdin.")
)

// mountFiles sets up the guest's file system.
func (m *Machine) mountFiles() (*vfs.FS, error) {
	c := &m.config
	cfg := vfs.Config{
		RAM: m.ram, RootFS: c.RootFS, Home: c.lookupEnv("HOME"), UID: c.UID, GID: c.GID,
		FileTimeNS: fileTimeSeconds * 1e9, HostTimes: c.HostTimes, Hidden: slices.Concat(c.Hidden, c.Outputs),
		Memory: kmem.New(c.MaxMemory),
	}
	if c.Replay != nil {
		cfg.Stored = c.Replay.inputs.Files
	}
	if c.RootFS == "" {
		if c.Named == nil {
			c.Named = append(vfs.NamedPaths(c.Args[1:], c.Dir, cfg.Home), vfs.InstalledPaths(c.Args[0], c.Env, c.Dir, cfg.Home)...)
		}
		cfg.Paths = append(vfs.DefaultPaths(c.Args[0], c.Dir), c.Named...)
	}
	for _, mount := range c.Mounts {
		cfg.Mounts = append(cfg.Mounts, vfs.Mount(mount))
	}
	files, err := vfs.New(cfg)
	if err != nil {
		return nil, wrapUnlessExplained(errFiles, err)
	}
	return files, nil
}

// wrapUnlessExplained returns an error of a kind, unless the error is a whole sentence already.
func wrapUnlessExplained(kind *errs.Kind, err error) error {
	var explained *errs.Error
	if errors.As(err, &explained) {
		return err
	}
	return kind.Wrap(err)
}

// environment is the environment that the program gets. Kendo's clocks count instructions, also
// those with which the dynamic linker looks a function up at its first call; which thread makes
// that call depends on timing, so all functions are looked up at the start.
func (c *Config) environment() []string {
	const now = "LD_BIND_NOW"
	if c.Sched.Policy != sched.Kendo && !dmt.Isolates(c.Sched.Policy) || c.lookupEnv(now) != "" {
		return c.Env
	}
	return append(slices.Clone(c.Env), now+"=1")
}

func (c *Config) lookupEnv(name string) string {
	value := ""
	for _, kv := range c.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

func (m *Machine) kernelConfig() kernel.Config {
	c := &m.config
	seed, cores := m.guestInputs()
	var service []string
	if m.with.service != nil {
		service = m.with.service.Programs
	}
	return kernel.Config{
		Service: service, Cores: cores, Level: c.CPU, Seed: seed, UID: c.UID, GID: c.GID, EpochNS: epochSeconds * 1e9,
		UnknownENOSYS: c.UnknownENOSYS, RandomLayout: c.RandomizeLayout, MaxMemory: c.MaxMemory, Requests: c.Requests,
	}
}

// start loads the program.
func (m *Machine) start() error {
	c, s := &m.config, m.state
	program, err := m.findProgram()
	if err != nil {
		return err
	}
	streams, err := m.openStreams()
	if err != nil {
		return err
	}
	return s.kernel.Start(kernel.Program{
		Path: program, Args: c.Args, Env: c.environment(), Dir: c.Dir, Streams: streams,
	})
}

// openStreams makes the guest's first three descriptors, nil for a closed one.
func (m *Machine) openStreams() (streams [3]*vfs.File, err error) {
	s, closed := m.state, m.config.Closed
	if !closed[0] {
		stdin, err := vfs.NewStdin(m.watchedStdin())
		if err != nil {
			return streams, errStdin.Wrap(err)
		}
		streams[0] = s.fs.OpenStdin(stdin)
	}
	for _, fd := range []int{1, 2} {
		if !closed[fd] {
			streams[fd] = s.fs.OpenOutput(s.digest, fd)
		}
	}
	return streams, nil
}

// findProgram looks a name without a slash up in the guest's PATH, as a shell
// does.
func (m *Machine) findProgram() (string, error) {
	name := m.config.Args[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	search := m.config.lookupEnv("PATH")
	root := m.state.fs.Root()
	c := &vfs.Ctx{Cred: vfs.NewCred(m.config.UID, m.config.GID), Root: root, Cwd: root}
	for _, dir := range strings.Split(search, ":") {
		if dir == "" {
			dir = m.config.Dir
		}
		candidate := path.Join(dir, name)
		d, errno := m.state.fs.Lookup(c, nil, candidate, true)
		if errno == 0 && d.Inode().IsRegular() && c.Access(d.Inode(), unix.X_OK, true) == 0 {
			return candidate, nil
		}
	}
	return "", errNotFound.New(name, search)
}

// SignalName is SIGSEGV and the like.
func SignalName(n int) string {
	if name := unix.SignalName(unix.Signal(n)); name != "" {
		return name
	}
	return "a real-time signal"
}
