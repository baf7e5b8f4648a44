// Package archtest holds the rules of the architecture that a compiler does
// not check: which layer may import which, where C and unsafe memory may be
// used, which functions deterministic code must not call, how large a package
// may be, how plain its words and names are, and that every package has a
// comment. It consists of tests only.
package archtest
