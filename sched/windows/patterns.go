package windows

// Admission is what a window is given at its begin.
type Admission struct {
	// Key is a hash of all but the content of the input: which connections are made and continued, how many bytes each
	// has, and where the server's threads wait. Exact is a hash of the input.
	Key, Exact uint64
	// Bytes are those of each connection.
	Bytes [][]byte
}

// Values is a set of values of a byte: bit v%64 of word v/64 is value v.
type Values [4]uint64

// Has reports whether a value is in the set.
func (s *Values) Has(v byte) bool { return s[v/64]>>(v%64)&1 != 0 }

// Pattern is the precondition of a schedule on the bytes of a connection: the values that each may have.
type Pattern []Values

// admits reports whether all connections have bytes that the patterns allow.
func admits(patterns []Pattern, bytes [][]byte) bool {
	if len(patterns) != len(bytes) {
		return false
	}
	for i, p := range patterns {
		if len(p) != len(bytes[i]) {
			return false
		}
		for at, v := range bytes[i] {
			if !p[at].Has(v) {
				return false
			}
		}
	}
	return true
}

// Reuse is how windows use stored schedules.
type Reuse string

const (
	// Online windows follow stored schedules, and new ones are stored.
	Online Reuse = "online"
	// Shadow windows are in order of arrival; schedules that they could have followed are counted.
	Shadow Reuse = "shadow"
	// Off: stored schedules are not looked for.
	Off Reuse = "off"
)
