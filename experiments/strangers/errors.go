package strangers

import "github.com/heddle-dmt/heddle/internal/errs"

var (
	errStart = errs.Define("strangers-start",
		"cannot run {program}",
		"The program is not installed, or the host refused another process.",
		"Install the programs with `make setup-strangers`.")
	errInputs = errs.Define("strangers-inputs",
		"cannot make the inputs of {program}",
		"The script of its recipe failed, or the folder for temporary files is full; the rest of the sentence says which.",
		"Install the programs with `make setup-strangers`, and make room.")
	errRecipe = errs.Define("strangers-recipe",
		"a recipe's script ends with status {status}: {text}",
		"A program of the script is not installed, or the script has a mistake.",
		"Install the programs with `make setup-strangers`, or correct the recipe.")
	errNative = errs.Define("strangers-native",
		"{program} fails on this host with status {status}: {text}",
		"The program is another version than the corpus was written for, or its arguments are wrong.",
		"Run the command by hand and correct the corpus.")
	errStore = errs.Define("strangers-store",
		"cannot use the stored result {file}",
		"The file cannot be read or written, or is no result of this command.",
		"Remove the file: its cell is then run again.")
	errNames = errs.Define("strangers-names",
		"there is no {kind} {name}; there are {names}",
		"A filter names a program or a column that the corpus does not have.",
		"Use one of the names in the sentence.")
)
