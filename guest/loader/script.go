package loader

import (
	"bytes"

	"golang.org/x/sys/unix"
)

func isScript(start []byte) bool { return bytes.HasPrefix(start, []byte("#!")) }

const blanks = " \t"

// parseScript finds the interpreter and its one optional argument in the first
// line, by the rules of Linux's binfmt_script: the argument is the rest of the
// line, blanks inside included.
func parseScript(start []byte) (interpreter, argument string, errno unix.Errno) {
	// The kernel's buffer has zeros after a short file.
	line := make([]byte, startSize)
	copy(line, start)
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[2:i]
	} else {
		line = line[2 : startSize-1]
		if rest := bytes.TrimLeft(line, blanks); !bytes.ContainsAny(rest, blanks+"\x00") {
			return "", "", unix.ENOEXEC // cut: the name may continue
		}
	}
	line = bytes.Trim(line, blanks)
	if len(line) == 0 {
		return "", "", unix.ENOEXEC
	}
	end := bytes.IndexAny(line, blanks+"\x00")
	switch {
	case end < 0:
		return string(line), "", 0
	case end == 0:
		return "", "", unix.EACCES // an empty name is the working directory's
	case line[end] != 0:
		rest, _, _ := bytes.Cut(bytes.TrimLeft(line[end:], blanks), []byte{0})
		argument = string(rest)
	}
	return string(line[:end]), argument, 0
}

// scriptArgs are the arguments of a script's interpreter: the script takes the
// place of its own name.
func scriptArgs(interpreter, argument, script string, args []string) []string {
	all := []string{interpreter}
	if argument != "" {
		all = append(all, argument)
	}
	all = append(all, script)
	return append(all, args[1:]...)
}
