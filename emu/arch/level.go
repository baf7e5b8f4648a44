package arch

// Level is a level of the x86-64 architecture, by the psABI (section 3.1.1): the instructions that
// a processor has.
type Level uint8

// The levels that an emulated processor can have. V2 has SSE4.2, POPCNT and CMPXCHG16B; V3 has AVX,
// AVX2, BMI1, BMI2, F16C, FMA, LZCNT and MOVBE as well.
const (
	V2 Level = iota
	V3
)

var levelNames = [...]string{"x86-64-v2", "x86-64-v3"}

// Levels lists the names of the levels.
func Levels() []string { return levelNames[:] }

// String returns the name that compilers use: x86-64-v2.
func (l Level) String() string { return levelNames[l] }

// ParseLevel returns the level with a name, and whether there is one.
func ParseLevel(name string) (Level, bool) {
	for i, n := range levelNames {
		if n == name {
			return Level(i), true
		}
	}
	return 0, false
}
