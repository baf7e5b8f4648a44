package direct

/*
#cgo CFLAGS: -I${SRCDIR}/../floats
*/
import "C"

import _ "github.com/heddle-dmt/heddle/emu/floats" // the C functions of float.c and approximate.c
