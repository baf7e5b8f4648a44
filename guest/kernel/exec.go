package kernel

import (
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/loader"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/ptrace"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/internal/errs"
)

// Program describes the first process.
type Program struct {
	Path      string // guest path
	Args, Env []string
	Dir       string // working directory, an absolute guest path
	// Streams become descriptors 0, 1 and 2; nil leaves one closed.
	Streams [3]*vfs.File
}

// Start makes the first process. An error is the loader's and meant for the user.
func (k *Kernel) Start(p Program) error {
	root := k.fs.Root()
	cred := vfs.NewCred(k.config.UID, k.config.GID)
	c := &vfs.Ctx{Cred: cred, Root: root, Cwd: root, Umask: 0o022}
	cwd, errno := k.fs.Lookup(c, root, p.Dir, true)
	if errno == 0 && !cwd.Inode().IsDir() {
		errno = unix.ENOTDIR
	}
	if errno != 0 {
		return errWorkingDir.Wrap(errno, p.Dir)
	}
	c.Cwd = cwd
	proc := &Process{
		k: k, exitSignal: int(unix.SIGCHLD), limits: defaultLimits(),
		files: &FDTable{memory: k.memory, refs: 1}, context: &fsContext{root: root, cwd: cwd, umask: 0o022}, actions: &signalActions{},
	}
	t := &Task{k: k, id: k.newID(nil), proc: proc, ctx: k.cpu.NewContext(), dirty: true, cred: cred}
	proc.pid = int32(t.id)
	k.addOutside()
	proc.parent = k.processes[parentID]
	proc.forker = proc.parent.leader
	proc.group, proc.session = parentID, parentID
	proc.threads, proc.leader = []*Task{t}, t
	space := k.newSpace(mm.DefaultLimits())
	files := &execFiles{fs: k.fs, ctx: c}
	defer files.releaseFiles()
	image, err := loader.Load(space, files, p.Path, p.Args, p.Env, k.loadOptions(t, files))
	if err != nil {
		space.Unref()
		return err
	}
	k.memory.Force(kmem.Thread + 3*kmem.Descriptor)
	proc.setMemoryCharge(kmem.Process)
	for _, f := range p.Streams {
		proc.files.list = append(proc.files.list, descriptor{file: f})
	}
	proc.space = space
	proc.applyLimits()
	k.processes[proc.pid] = proc
	k.init = proc
	k.stats.Processes++
	t.installProgram(image, files, p.Env)
	t.name = files.commandName(p.Path) // the name given, not the target of a symbolic link
	k.startTask(t)
	return nil
}

// newSpace makes an empty address space.
func (k *Kernel) newSpace(limits mm.Limits) *mm.AddressSpace {
	space := mm.New(k.ram, limits)
	space.Reclaimer = k.fs
	return space
}

// execFiles opens programs for the loader on behalf of a task.
type execFiles struct {
	task   *Task // waits for leases; nil at the start of the run
	fs     *vfs.FS
	ctx    *vfs.Ctx
	opened []*execFile // the program first; a script before its interpreter
	// For execveat with a descriptor: the program, and whether the call closes the path that names
	// it.
	fixed      *vfs.Dentry
	pathCloses bool

	// The credentials that the program runs with once it is loaded, and whether they exceed its
	// caller's.
	cred   vfs.Cred
	secure bool
}

func (e *execFiles) OpenExec(name string) (loader.File, unix.Errno) {
	d, errno := e.fixed, unix.Errno(0)
	e.fixed = nil
	if d == nil {
		d, errno = e.fs.Lookup(e.ctx, nil, name, true)
	}
	if errno != 0 {
		return nil, errno
	}
	if d.Inode().IsDir() {
		return nil, unix.EISDIR // which the loader reports as EACCES
	}
	if i := d.Inode(); e.task != nil && i.IsRegular() && e.ctx.Access(i, vfs.MayExec, true) == 0 {
		if errno := e.task.breakLeases(i, unix.O_RDONLY); errno != 0 {
			return nil, errno
		}
	}
	f, errno := e.fs.OpenExec(e.ctx, d)
	if errno != 0 {
		return nil, errno
	}
	f.Opened()
	f.Ref()
	x := &execFile{name: name, f: f, ctx: e.ctx}
	e.opened = append(e.opened, x)
	return x, 0
}

// releaseFiles releases the files. They are held longer than the loader runs.
func (e *execFiles) releaseFiles() {
	for _, x := range e.opened {
		x.f.Unref()
	}
}

// openedFile is the file that was opened under a name.
func (e *execFiles) openedFile(name string) *vfs.File {
	i := slices.IndexFunc(e.opened, func(x *execFile) bool { return x.name == name })
	return e.opened[i].f
}

// execFile is an open program.
type execFile struct {
	name   string
	f      *vfs.File
	ctx    *vfs.Ctx
	object *mm.Object
}

func (e *execFile) Size() int64 { return e.f.Inode().Size() }

func (e *execFile) ReadAt(p []byte, off int64) (int, unix.Errno) {
	n, errno := e.f.Pread(e.ctx, p, off)
	notifyAccess(e.f, uint64(n))
	return n, errno
}

func (e *execFile) Object() *mm.Object {
	if e.object == nil {
		// An executable file can be mapped: OpenExec has checked that it is regular.
		e.object, _ = e.f.Map(false, false)
	}
	return e.object
}

func (e *execFile) MapFile() mm.File { return e.f }

func (e *execFile) Close() {
	if e.object != nil {
		e.object.Unref()
	}
	e.f.Unref()
}

func (k *Kernel) loadOptions(t *Task, files *execFiles) loader.Options {
	o := loader.Options{
		Identify: func(program loader.File) loader.Identity {
			s := program.(*execFile).f.Inode().Stat()
			files.cred, files.secure = t.cred.OfProgram(s.Mode, s.Uid, s.Gid, t.mayGainRights())
			c := &files.cred
			return loader.Identity{UID: c.UID, EUID: c.EUID, GID: c.GID, EGID: c.EGID, Secure: files.secure}
		},
		Level: k.config.Level, HWCap: k.cpu.CPUID(1, 0)[3], MinSignalStack: k.minSignalStack(), Randomize: k.config.RandomLayout && t.personality&addrNoRandomize == 0,
		BottomUp: t.personality&addrCompatLayout != 0,
	}
	if o.Randomize {
		o.LayoutSeed = k.layout.Uint64()
	}
	k.Read(o.Random[:])
	return o
}

// mayGainRights reports whether a program may run with more rights than its caller.
func (t *Task) mayGainRights() bool {
	held := t.trace != nil && !t.trace.tracer.cred.Can(vfs.CapSysPtrace)
	return !t.noNewPrivs && !held
}

// installProgram makes the task start the program that was loaded into its process's address space.
func (t *Task) installProgram(image loader.Image, files *execFiles, env []string) {
	p := t.proc
	if p.dumpable = 1; t.cred.EUID != t.cred.UID || t.cred.EGID != t.cred.GID {
		p.dumpable = 0
	}
	t.setCredentials(files.cred)
	if files.secure {
		t.parentDeath = 0
		t.personality &^= clearedOnSetID
	}
	p.setBinary(files.openedFile(image.Program.Path))
	for _, x := range files.opened {
		if x.f != p.binary {
			x.f.AllowWriters() // though its pages are mapped
		}
	}
	p.path = files.opened[0].f.Dentry().Path()
	p.joinService(files)
	p.args, p.env = image.Args, env
	p.setMemoryCharge(kmem.Process + stringsSize(p.args) + stringsSize(p.env))
	t.name = files.commandName(p.path)
	t.regs = arch.Regs{RIP: uint64(image.Entry), RFLAGS: 0x202}
	t.regs.GPR[arch.RSP] = uint64(image.StackPointer)
	t.dirty = true
	p.objects = []loader.Object{image.Program}
	if image.Linker.Path != "" {
		p.objects = append(p.objects, image.Linker)
	}
}

// setBinary makes f the file that the process executes, to which no process can write meanwhile; nil:
// the process executes none.
func (p *Process) setBinary(f *vfs.File) {
	if f != nil {
		f.Ref()
	}
	if p.binary != nil {
		p.binary.Unref()
	}
	p.binary = f
}

// stringsSize is the number of bytes that a list of strings takes with its pointers.
func stringsSize(list []string) uint64 {
	n := uint64(0)
	for _, s := range list {
		n += uint64(len(s)) + 16
	}
	return n
}

// commandName is comm: the last component of the path that was executed.
func (e *execFiles) commandName(executed string) string {
	base := path.Base(executed)
	return base[:min(len(base), 15)]
}

// maxArgs bounds the strings of an execve call before they are copied to the stack, where Linux's
// own limit applies.
const maxArgs = 6 << 20

// readStrings reads a zero-terminated array of string pointers.
func (t *Task) readStrings(at uint64, room *int) ([]string, unix.Errno) {
	var list []string
	for ; at != 0; at += 8 {
		p, errno := t.proc.space.ReadU64(arch.Addr(at))
		if errno != 0 {
			return nil, errno
		}
		if p == 0 {
			break
		}
		s, errno := t.proc.space.ReadCString(arch.Addr(p), 128<<10)
		if errno == unix.ENAMETOOLONG {
			errno = unix.E2BIG
		}
		if errno != 0 {
			return nil, errno
		}
		if *room -= len(s) + 9; *room < 0 {
			return nil, unix.E2BIG
		}
		list = append(list, s)
	}
	return list, 0
}

func sysExecve(t *Task, a [6]uint64) (uint64, unix.Errno) {
	name, errno := t.readPath(a[0])
	if errno != 0 {
		return 0, errno
	}
	return t.execve(&execFiles{task: t, fs: t.k.fs, ctx: t.vfsContext()}, name, a[1], a[2])
}

func sysExecveat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	name, errno := t.readPath(a[1])
	if errno != 0 {
		return 0, errno
	}
	flags := uint32(a[4])
	if flags&^(unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW) != 0 {
		return 0, unix.EINVAL
	}
	files := &execFiles{task: t, fs: t.k.fs, ctx: t.vfsContext()}
	if name, errno = files.findProgram(t, a[0], name, flags); errno != 0 {
		return 0, errno
	}
	return t.execve(files, name, a[2], a[3])
}

// findProgram looks up the program that execveat names, and returns its path as /proc shows it.
func (e *execFiles) findProgram(t *Task, fd uint64, name string, flags uint32) (string, unix.Errno) {
	from, errno := t.startOfPath(fd, name)
	if errno != 0 {
		return "", errno
	}
	if e.fixed = from; from == nil {
		e.fixed = t.proc.context.cwd
	}
	if name != "" || flags&unix.AT_EMPTY_PATH == 0 {
		if e.fixed, errno = e.fs.Lookup(e.ctx, from, name, flags&unix.AT_SYMLINK_NOFOLLOW == 0); errno != 0 {
			return "", errno
		}
	}
	if e.fixed.Inode().IsSymlink() {
		return "", unix.ELOOP
	}
	if from == nil {
		return name, 0
	}
	e.pathCloses = t.proc.files.openEntry(fd).cloexec
	shown := "/dev/fd/" + strconv.Itoa(int(int32(fd)))
	if name != "" {
		shown += "/" + name
	}
	return shown, 0
}

// execve replaces the program of t's process. Until the new program is loaded nothing changes; then
// the other threads end, and t takes the place of the main thread.
func (t *Task) execve(files *execFiles, name string, argv, envp uint64) (uint64, unix.Errno) {
	defer files.releaseFiles()
	if files.fixed == nil {
		// A missing program is reported before a bad argument.
		if _, errno := files.fs.Lookup(files.ctx, nil, name, true); errno != 0 {
			return 0, errno
		}
	}
	room := maxArgs
	args, errno := t.readStrings(argv, &room)
	if errno != 0 {
		return 0, errno
	}
	env, errno := t.readStrings(envp, &room)
	if errno != 0 {
		return 0, errno
	}
	p := t.proc
	space := t.k.newSpace(p.space.Limits)
	options := t.k.loadOptions(t, files)
	t.k.separateExec(name, &options)
	options.PathCloses = files.pathCloses
	image, err := loader.Load(space, files, name, args, env, options)
	if err != nil {
		space.Unref()
		return 0, loader.Errno(err)
	}
	if !t.endOtherThreads() {
		space.Unref()
		t.blockUntil(forever, &p.quiet)
		return 0, errBlocked
	}
	t.k.observer.Syscall(t, t.call.number, t.call.args, 0)
	before := t.id
	t.becomeLeader()
	t.k.exitRobustList(t)
	t.k.exitPILocks(t)
	if t.clearTID != 0 && p.space.Users() > 1 {
		if p.space.WriteU32(t.clearTID, 0) == 0 {
			_, _ = t.k.futexWake(t.futexKeyAt(t.clearTID, false), 1, ^uint32(0))
		}
	}
	t.robustList, t.clearTID = 0, 0
	t.k.releaseSpace(p)
	p.space = space
	t.k.releaseVfork(t)
	t.resetForExec()
	t.installProgram(image, files, env)
	t.name = files.commandName(name)
	t.call = callState{}
	t.reportExec(before)
	return 0, errReplaced
}

// endOtherThreads ends the other threads; false: their tracers must first resume them or
// acknowledge their end.
func (t *Task) endOtherThreads() bool {
	p := t.proc
	for _, other := range slices.Clone(p.threads) {
		if other != t {
			t.k.endTask(other, exitStatus{})
		}
	}
	return len(p.threads) == 1 && len(p.zombies) == 0
}

// reportExec reports a new program to the tracer of a thread that had the id before.
func (t *Task) reportExec(before arch.ThreadID) {
	switch {
	case t.trace == nil:
		return
	case t.hasEvent(unix.PTRACE_EVENT_EXEC):
		t.regs.GPR[arch.RAX] = linux.Failure(unix.ENOSYS) // it has not returned yet
		t.stopForEvent(stopAtExec, unix.PTRACE_EVENT_EXEC, uint64(before))
	case !t.trace.seized:
		t.k.sendTask(t, userInfo(unix.SIGTRAP, siUser, t.proc.pid, t.cred.UID))
	}
	t.trace.returned = true
}

// becomeLeader gives t, the only thread of its process, the process's id.
func (t *Task) becomeLeader() {
	p := t.proc
	if leader := p.leader; leader != t && leader.trace != nil {
		leader.detachTracer() // its end is not reported to a tracer
	}
	p.leader = t
	if t.id == arch.ThreadID(p.pid) {
		return
	}
	t.k.sched.Exit(t.id)
	t.k.tasks.Delete(t.id)
	t.id = arch.ThreadID(p.pid)
	t.k.tasks.Put(t.id, t)
	if t.affinity != 0 {
		t.k.sched.SetAffinity(t.id, t.affinity)
	}
	if t.rank() > 0 {
		t.reportPrecedence()
	}
	t.k.sched.Ready(t.id)
}

// resetForExec resets the state that execve(2) does not preserve.
func (t *Task) resetForExec() {
	p := t.proc
	actions := &signalActions{}
	for n, a := range p.actions.list {
		if a.Handler == sigIgn {
			actions.list[n] = sigAction{Handler: sigIgn}
		}
	}
	p.actions = actions
	t.personality &^= readImpliesExec
	t.altStack = sigStack{Flags: t.altStack.Flags & ssAutodisarm} // which Linux 6 keeps
	t.trap = trapInfo{}
	p.deleteTimers()
	p.lastTimer = 0
	p.execed = true
	p.membarrier = 0
	if p.files.refs > 1 {
		shared := p.files
		p.files = shared.clone()
		shared.refs--
	}
	p.files.closeOnExec(p)
	p.applyLimits()
	t.debug = ptrace.DebugRegisters{}
	t.interrupted, t.restartBlock = nil, nil
	t.ctx.Release()
	t.ctx = t.k.cpu.NewContext()
}

var errWorkingDir = errs.Define("working-folder",
	"cannot start in the folder {dir}",
	"The working folder is not visible to the guest, or may not be entered.",
	"Show it to the guest with --mount, or start in another folder.")
