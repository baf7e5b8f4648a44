package races

// #include "races.h"
import "C"

// SetProcess sets the process of a thread, before its first access. Threads without one are of
// process 0.
func (d *Detector) SetProcess(n, process int) {
	d.threadAt(n).process = C.int64_t(process)
}

// EndProcess ends a process. The accesses of its threads do not race with later ones of other
// processes: memory that both had may be a copy.
func (d *Detector) EndProcess(process int) { d.endedProcesses[process] = true }

// CopyPage makes the page with number to a copy of the page from, which the process has there
// instead: the accesses of its threads to from move. A page has 4096 bytes, and its number is that
// of its first byte divided by 4096.
func (d *Detector) CopyPage(to, from uint64, process int) {
	C.races_copy_page(d.c, C.uint64_t(to), C.uint64_t(from), C.int64_t(process))
}

// inEndedProcess reports whether two accesses are certainly not to the same memory, as the process
// of the first has ended.
func (d *Detector) inEndedProcess(before, now *C.struct_races_description) bool {
	process := d.threadAt(threadOf(before)).process
	return process != d.threadAt(threadOf(now)).process && d.endedProcesses[int(process)]
}
