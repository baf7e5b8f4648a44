package sweep

import "github.com/heddle-dmt/heddle/internal/errs"

var (
	errFolder = errs.Define("experiment-folder",
		"cannot find the folder of the experiment file",
		"The current folder was removed or may not be read.",
		"Change to a folder that exists.")
	errProgram = errs.Define("experiment-program",
		"the program {program} of the experiment cannot be used: {problem}",
		"The program was removed or became unreadable after the experiment file was checked.",
		"Install it again, or correct the command in the experiment file.")
	errInputs = errs.Define("experiment-inputs",
		"cannot make the input {file}",
		"The folder for inputs, beside the result store, cannot be written, or the disk is full.",
		"Make room, or name another store with --store.")
	errSelf = errs.Define("experiment-self",
		"cannot read heddle's own program file, which the keys of results depend on",
		"The /proc file system is not mounted.",
		"Mount /proc.")
	errFailed = errs.Define("experiment-runs-failed",
		"{failed} of {total} runs of the experiment failed; the first: {first}",
		"heddle could not carry these runs out; each is stored with its own sentence.",
		"Look up the sentence of the first; run the experiment again to try the failed ones once more.")
	errDescriptors = errs.Define("experiment-descriptors",
		"the host's limit on open files is too low to start a process for a run",
		"The limit of this process (ulimit -n), or that of the whole host, leaves no descriptor. The results until then are stored.",
		"Raise the limit with ulimit -n, or start fewer runs at a time with --workers, and run the experiment again.")
	errConflict = errs.Define("experiment-not-repeatable",
		"NOT REPEATABLE: {count} runs gave another digest than an equal run before them; the first: {first}",
		"A run is not a pure function of its program, files, configuration and seed: a file that it reads changed meanwhile, or heddle has a defect.",
		"Repeat the named run with heddle run --verify, which names the first event that differs, and report it.")
	errExists = errs.Define("example-exists",
		"{file} is there already",
		"heddle experiment init does not overwrite files.",
		"Name another file, or remove this one.")
	errExample = errs.Define("example-not-written",
		"cannot write the example {file}",
		"Its folder does not exist or may not be written.",
		"Name a file in a folder that you may write to.")
	errNoRows = errs.Define("table-no-rows",
		"no row of the table meets the conditions {where}",
		"The conditions name values that the grid does not have, or contradict each other.",
		"Change the conditions after where.")
	errOfFailures = errs.Define("table-of-failures",
		"the table of {file} counts failures and has no measures, statistics or base",
		"An experiment with a section failures has a table of its own, which these choices would not change.",
		"Leave them out, or read the runs with `heddle experiment export`.")
	errNothingStored = errs.Define("table-empty",
		"none of the {total} runs of {file} is in the store {store}",
		"The experiment has not been run yet, its parameters were changed since, or its results are in another store.",
		"Run `heddle experiment run` with the same file first.")
)
