package debuginfo

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// maxDemangled bounds demangled names to 2^maxDemangled bytes: substitutions can
// make a short name very long.
const maxDemangled = 12

// Demangle returns the name that a symbol has in the source: that of a C++ or Rust
// function in the notation of c++filt(1), and every other name unchanged.
func Demangle(symbol string) string {
	if !strings.HasPrefix(symbol, "_Z") && !strings.HasPrefix(symbol, "_R") {
		return symbol
	}
	if name, ok := demangleRust(symbol); ok {
		return name
	}
	return demangle.Filter(symbol, demangle.MaxLength(maxDemangled), demangle.NoRust)
}
