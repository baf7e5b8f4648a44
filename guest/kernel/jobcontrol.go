package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/tty"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Sessions, process groups and the terminals that control them: credentials(7),
// setsid(2), ioctl_tty(2).

// SignalGroup sends a signal of the kernel's own to a process group. It implements
// tty.Host.
func (k *Kernel) SignalGroup(group int32, signal unix.Signal) {
	for _, p := range k.sortedProcesses() {
		if p.group == group && !p.outside {
			k.sendProcess(p, signalInfo(signal, siKernel))
		}
	}
}

// isLeader reports whether the process leads its session.
func (p *Process) isLeader() bool { return p.session == p.pid }

// isOrphanedGroup reports whether no process takes care of the jobs of a group:
// none of its members, but for ignored, has a parent in another group of their
// session. The shell that the program was started from takes care of its group.
func (k *Kernel) isOrphanedGroup(group int32, ignored *Process) bool {
	for _, p := range k.processes {
		switch {
		case p.group != group || p == ignored || p.status.zombie:
		case p.outside || p.parent.pid == parentID:
			return false
		case p.parent.pid != initID && p.parent.group != group && p.parent.session == p.session:
			return false
		}
	}
	return true
}

// endOrphanedJobs sends SIGHUP and SIGCONT to the group of p, if it has stopped
// processes and loses the last process that took care of it: parent, which was
// that of p, or p itself if it ends.
func (k *Kernel) endOrphanedJobs(p, parent *Process, ends bool) {
	ignored := p
	if !ends {
		ignored = nil
	}
	if parent.group == p.group || parent.session != p.session || !k.isOrphanedGroup(p.group, ignored) {
		return
	}
	for _, o := range k.processes {
		if o.group == p.group && o.stopped && !o.status.zombie {
			k.SignalGroup(p.group, unix.SIGHUP)
			k.SignalGroup(p.group, unix.SIGCONT)
			return
		}
	}
}

// setTerminal makes a terminal the one that controls the process's session.
func (p *Process) setTerminal(t *tty.Terminal) {
	t.Session, t.Group = p.session, p.group
	p.terminal, p.lostGroup = t, 0
}

// forgetTerminal takes a terminal from all processes of a session.
func (k *Kernel) forgetTerminal(session int32) {
	for _, p := range k.processes {
		if p.session == session {
			p.terminal = nil
		}
	}
}

// leaveTerminal gives the terminal up that controls the session of a leader, who
// ends or has asked for it (disassociate_ctty of Linux).
func (k *Kernel) leaveTerminal(p *Process, ends bool) {
	if !p.isLeader() {
		return
	}
	t := p.terminal
	switch {
	case t != nil && t.Group != 0:
		k.SignalGroup(t.Group, unix.SIGHUP)
		if !ends {
			k.SignalGroup(t.Group, unix.SIGCONT)
		}
	case t == nil && ends && p.lostGroup != 0:
		k.SignalGroup(p.lostGroup, unix.SIGHUP)
		k.SignalGroup(p.lostGroup, unix.SIGCONT)
	}
	p.lostGroup = 0
	if t != nil {
		t.Session, t.Group = 0, 0
	}
	k.forgetTerminal(p.session)
}

// hangUp hangs a terminal up: the leader of the session that it controls gets
// SIGHUP and SIGCONT, and open descriptions work no more.
func (k *Kernel) hangUp(t *tty.Terminal) {
	if t.Session != 0 {
		for _, p := range k.sortedProcesses() {
			if p.session != t.Session || p.outside {
				continue
			}
			if p.terminal == t {
				p.terminal = nil
			}
			if p.isLeader() && !p.status.zombie {
				k.sendProcess(p, signalInfo(unix.SIGHUP, siKernel))
				k.sendProcess(p, signalInfo(unix.SIGCONT, siKernel))
				p.lostGroup = t.Group
			}
		}
	}
	t.HangUp()
}

// checkForeground checks that the task may use the terminal that controls its
// session, if it is that one: the group of a process in the background is sent
// the signal, SIGTTIN or SIGTTOU. errRestart: it was. EIO: it would not help.
func (t *Task) checkForeground(x *tty.Terminal, signal unix.Signal) unix.Errno {
	p := t.proc
	if p.terminal != x || x.Group == 0 || x.Group == p.group {
		return 0
	}
	n := int(signal)
	if t.mask.has(n) || p.actions.list[n].Handler == sigIgn {
		if signal == unix.SIGTTIN {
			return unix.EIO
		}
		return 0
	}
	if t.k.isOrphanedGroup(p.group, nil) {
		return unix.EIO
	}
	t.k.SignalGroup(p.group, signal)
	return t.wait(errRestart, forever)
}

func sysVhangup(t *Task, _ [6]uint64) (uint64, unix.Errno) {
	if !t.cred.Can(vfs.CapSysTTYConfig) {
		return 0, unix.EPERM
	}
	if x := t.proc.terminal; x != nil {
		t.k.hangUp(x)
	}
	return 0, 0
}
