package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/tty"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Sessions, process groups and the terminals that control them: credentials(7),
// setsid(2), ioctl_tty(2).

// SignalGroup sends a process group a signal from the kernel. It implements tty.Host.
func (k *Kernel) SignalGroup(group int32, signal unix.Signal) {
	for _, p := range k.sortedProcesses() {
		if p.group == group && !p.outside {
			k.sendProcess(p, signalInfo(signal, siKernel))
		}
	}
}

// isLeader reports whether the process leads its session.
func (p *Process) isLeader() bool { return p.session == p.pid }

// isOrphanedGroup reports whether a process group is orphaned: no member except ignored has a
// parent in another group of their session. The group of the first process is never orphaned; the
// shell that started it controls it.
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

// endOrphanedJobs sends SIGHUP and SIGCONT to the group of p if it has stopped members and becomes
// orphaned: because p has lost the parent given or, if ends, because p itself ends.
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

// setTerminal makes a terminal the controlling terminal of the process.
func (p *Process) setTerminal(t *tty.Terminal) {
	t.Session, t.Group = p.session, p.group
	p.terminal, p.lostGroup = t, 0
}

// forgetTerminal takes the controlling terminal from all processes of a session.
func (k *Kernel) forgetTerminal(session int32) {
	for _, p := range k.processes {
		if p.session == session {
			p.terminal = nil
		}
	}
}

// leaveTerminal gives up the controlling terminal of a session whose leader ends or has asked for
// it (disassociate_ctty of Linux).
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

// hangUpTerminal hangs up a terminal: the leader of the session that it controls gets SIGHUP and
// SIGCONT, and open descriptions no longer work.
func (k *Kernel) hangUpTerminal(t *tty.Terminal) {
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

// checkForeground checks that the task may use a terminal. If it is the task's controlling terminal
// and the task's group is in the background, the group is sent the signal, SIGTTIN or SIGTTOU.
// errRestart: the signal was sent. EIO: the signal would have no effect.
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
	return t.waitInterruptibly(errRestart, forever)
}

func sysVhangup(t *Task, _ [6]uint64) (uint64, unix.Errno) {
	if !t.cred.Can(vfs.CapSysTTYConfig) {
		return 0, unix.EPERM
	}
	if x := t.proc.terminal; x != nil {
		t.k.hangUpTerminal(x)
	}
	return 0, 0
}
