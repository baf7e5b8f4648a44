package explore

import "github.com/heddle-dmt/heddle/internal/errs"

var (
	errOneThread = errs.Define("explore-one-thread",
		"{program} creates no second thread and exits with status {status}: it has one execution",
		"heddle explore executes a program under every order of its threads. A program with one thread has only one order.",
		"Name a program with threads.")
	errRefused = errs.Define("explore-program",
		"cannot explore a program that {what}",
		"Which orders of events are equivalent is known for the threads of one process that act on memory, futexes, files and pipes, and not for signals between threads, processes and timers that send signals.",
		"Use heddle find, which needs no such knowledge.")
	errEvents = errs.Define("explore-events",
		"an execution has more than {most} events",
		"The number of executions grows exponentially with that of the accesses that conflict: such a program has too many.",
		"Give the program less to do, or use heddle find.")
	errMany = errs.Define("explore-many",
		"the exploration needs too much memory",
		"Which executions are still to be carried out is kept in memory, and under these bounds they are too many.",
		"Set a smaller bound of --preemptions or --delays, give the program less to do, or use heddle find.")
	errNone = errs.Define("explore-none",
		"all of {number} executions were left before their ends, because threads wait in loops",
		"Each execution was left as equal to another one but for rounds of a loop, and none was carried out to its end: this is a mistake in heddle.",
		"Use heddle find, and report the sentence with the program.")
	errCores = errs.Define("explore-cores",
		"{threads} threads can run at the same time, on {cores} cores",
		"While a thread is between the load and the store of an instruction, or has stores that others do not see yet, it keeps its core.",
		"Give the machine more cores with --cores.")
	errDiffers = errs.Define("explore-differs",
		"executions cannot be explored",
		"The program does something else when independent events come in another order, as one does that reads the time or takes addresses of memory for data, or heddle has a mistake; the rest of the sentence says where.",
		"Use heddle find. If the program does not depend on time, report the sentence with the program.")
	errState = errs.Define("explore-state",
		"cannot continue from {file}",
		"The file is not the state of an exploration of this program with these arguments, flags and files, or is damaged.",
		"Name another file with --state, or remove this one to begin anew.")
	errStateFile = errs.Define("explore-state-file",
		"cannot write {file}",
		"The file or its folder cannot be written, or the disk is full.",
		"Make room, or name another file with --state.")
	errUnstable = errs.Define("explore-not-repeated",
		"the failure {failure} was found, and its {repetition} ends with {found}",
		"A run and its repetition differ: this is a mistake in heddle.",
		"Report the sentence, with the program.")
)
