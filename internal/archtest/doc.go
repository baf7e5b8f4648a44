// Package archtest holds the rules of the architecture that a compiler does
// not check: which layer may import which, where C and unsafe memory may be
// used, what deterministic code must not call, and that every package says
// what it is. It consists of tests only.
package archtest
