package job

import "flag"

// Random tests draw the same numbers in every run, so that a failure means a
// change; -rapid.seed chooses others.
func init() {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
}
