package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// The first process has an id that a program started from a shell might have. Its group and session
// are those of its parent.
const (
	initID   = 1
	parentID = 999
	firstID  = 1000
)

// addOutside makes the processes that exist before the program: init, which inherits orphans, and
// the shell that the program is started from. They wait for their children, execute nothing, have
// no memory, and ignore signals.
func (k *Kernel) addOutside() {
	init := k.newOutside(initID, nil, vfs.NewCred(0, 0), "/sbin/init")
	init.started = -bootNS
	k.newOutside(parentID, init, vfs.NewCred(k.config.UID, k.config.GID), "sh")
}

// newOutside makes a process outside of the program, with its own group and session.
func (k *Kernel) newOutside(pid int32, parent *Process, cred vfs.Cred, command string) *Process {
	p := &Process{
		k: k, pid: pid, parent: parent, group: pid, session: pid, outside: true, args: []string{command},
		limits: defaultLimits(), dumpable: 1, exitSignal: int(unix.SIGCHLD), actions: &signalActions{},
		context: &fsContext{root: k.fs.Root(), cwd: k.fs.Root(), umask: 0o022},
	}
	name := command
	if pid == initID {
		name = "init"
	}
	p.threads = []*Task{{
		k: k, id: arch.ThreadID(pid), proc: p, cred: cred, name: name, state: blocked, started: p.started,
		call: callState{number: unix.SYS_WAIT4},
	}}
	p.leader = p.threads[0]
	k.processes[pid] = p
	return p
}

// findTask finds a thread by its id, including threads outside of the program, or returns nil.
func (k *Kernel) findTask(id int32) *Task {
	if t := k.tasks.At(arch.ThreadID(id)); t != nil {
		return t
	}
	if p := k.processes[id]; p != nil && p.outside {
		return p.threads[0]
	}
	return nil
}

// heirOfChildren is the process that inherits p's children: the nearest ancestor that is a
// subreaper, or init.
func (k *Kernel) heirOfChildren(p *Process) *Process {
	for a := p.parent; a != nil; a = a.parent {
		if a.subreaper && len(a.threads) > 0 {
			return a
		}
	}
	return k.processes[initID]
}
