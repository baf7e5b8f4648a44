package procfs

import "github.com/heddle-dmt/heddle/emu/arch"

// sysvipc is /proc/sysvipc: a line for each System V object.
var sysvipc = fixedFolder("sysvipc",
	printedFile("msg", sysvMessages),
	printedFile("sem", sysvSemaphores),
	printedFile("shm", sysvSegments),
)

func sysvSegments(r *request, p *textPrinter) {
	p.WriteString("       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid" +
		"      atime      dtime      ctime                   rss                  swap\n")
	segments, _, _ := r.kernel.SystemV()
	for _, o := range segments.List() {
		s := o.Status()
		p.printf("%10d %10d  %4o %21d %5d %5d  %5d %5d %5d %5d %5d %10d %10d %10d %21d %21d\n",
			s.Perm.Key, o.Common().ID, s.Perm.Mode, s.Size, s.Creator, s.Last, s.Mappings, s.Perm.UID, s.Perm.GID,
			s.Perm.CUID, s.Perm.CGID, s.Attached, s.Detached, s.Change, o.Resident()*arch.PageSize, 0)
	}
}

func sysvSemaphores(r *request, p *textPrinter) {
	p.WriteString("       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n")
	_, sets, _ := r.kernel.SystemV()
	for _, o := range sets.List() {
		s := o.Status()
		p.printf("%10d %10d  %4o %10d %5d %5d %5d %5d %10d %10d\n", s.Perm.Key, o.Common().ID, s.Perm.Mode, s.Len,
			s.Perm.UID, s.Perm.GID, s.Perm.CUID, s.Perm.CGID, s.Used, s.Change)
	}
}

func sysvMessages(r *request, p *textPrinter) {
	p.WriteString("       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid" +
		"      stime      rtime      ctime\n")
	_, _, queues := r.kernel.SystemV()
	for _, o := range queues.List() {
		s := o.Status()
		p.printf("%10d %10d  %4o  %10d %10d %5d %5d %5d %5d %5d %5d %10d %10d %10d\n", s.Perm.Key, o.Common().ID, s.Perm.Mode,
			s.Bytes, s.Messages, s.LastSender, s.LastReceiver, s.Perm.UID, s.Perm.GID, s.Perm.CUID, s.Perm.CGID,
			s.Sent, s.Received, s.Change)
	}
}
