package complementary

// Combination is what the three replicas of an epoch came to, as table 1 writes
// it: "F-AB". The first letter is the thread-parallel replica, F is a self-evident
// failure, and replicas with the same other letter had the same output and state.
type Combination string

// Combine names the results of three replicas, the thread-parallel one first:
// which of them failed, and which of the others are alike.
func Combine(failed [3]bool, alike func(i, j int) bool) Combination {
	letters, next := [3]byte{}, byte('A')
	for i := range letters {
		if failed[i] {
			letters[i] = 'F'
			continue
		}
		for j := range i {
			if !failed[j] && letters[i] == 0 && alike(j, i) {
				letters[i] = letters[j]
			}
		}
		if letters[i] == 0 {
			letters[i] = next
			next++
		}
	}
	return Combination([]byte{letters[0], '-', letters[1], letters[2]})
}

// Bug is the simplest explanation of a combination: the fewest bugs, and of those
// the fewest failure requirements (section 3.3.1).
type Bug string

// The explanations of table 1.
const (
	NoBug    Bug = "none"
	NonRace  Bug = "non-race bug"
	TypeI    Bug = "type I"
	TypeII   Bug = "type II"
	Multiple Bug = "multiple"
)

// Replica names one of an epoch's three.
type Replica int

// The replicas. The thread-parallel one has the first letter of a combination.
const (
	NoReplica      Replica = -1
	ThreadParallel Replica = 0
	First          Replica = 1
	Second         Replica = 2
)

func (r Replica) String() string {
	switch r {
	case ThreadParallel:
		return "thread-parallel"
	case First:
		return "first"
	case Second:
		return "second"
	default:
		return "none"
	}
}

// Diagnosis is a row of table 1.
type Diagnosis struct {
	Bug Bug
	// Commit is the replica whose state the run goes on from, or NoReplica: the
	// epoch is rolled back.
	Commit Replica
	// Shorter tells that the epoch is executed again in shorter ones, each of
	// which may have one bug only.
	Shorter bool
}

// table is table 1, with the combinations that differ in the order of the two
// epoch-parallel replicas. Where it leaves the choice, the first one is taken.
var table = map[Combination]Diagnosis{
	"A-AA": {NoBug, ThreadParallel, false},
	"F-FF": {NonRace, NoReplica, false},
	"A-AB": {TypeI, NoReplica, false},
	"A-BA": {TypeI, NoReplica, false},
	"A-AF": {TypeI, ThreadParallel, false},
	"A-FA": {TypeI, ThreadParallel, false},
	"F-FA": {TypeI, Second, false},
	"F-AF": {TypeI, First, false},
	"A-BB": {TypeII, First, false},
	"A-BC": {TypeII, First, false},
	"F-AA": {TypeII, First, false},
	"F-AB": {TypeII, First, false},
	"A-BF": {Multiple, NoReplica, true},
	"A-FB": {Multiple, NoReplica, true},
	"A-FF": {Multiple, NoReplica, true},
}

// Diagnose looks a combination up in table 1.
func (c Combination) Diagnose() Diagnosis { return table[c] }

// Race tells that the combination shows a data race: replicas that obey the same
// order of synchronization differ in nothing else (section 3.3.2).
func (c Combination) Race() bool { return c != "A-AA" && c != "F-FF" }

// Canonical is the combination as table 1 prints it: of two that differ in the
// order of the epoch-parallel replicas, the one it names first.
func (c Combination) Canonical() Combination {
	switch c {
	case "A-BA":
		return "A-AB"
	case "A-FA":
		return "A-AF"
	case "F-AF":
		return "F-FA"
	case "A-FB":
		return "A-BF"
	}
	return c
}

// Vote chooses among thread-parallel executions of one epoch that has the same
// race whenever it is executed: the result that most of them had, of several the
// one that came first (section 3.3.1 plans this; schedules of epoch-parallel
// replicas are artificial and have no vote). Results are numbered; equal numbers
// are alike, and negative ones failed. It returns the place of the first execution
// with the chosen result, or -1 if all failed.
func Vote(results []int) int {
	best, most := -1, 0
	for i, r := range results {
		n := 0
		for _, other := range results {
			if r == other {
				n++
			}
		}
		if r >= 0 && n > most {
			best, most = i, n
		}
	}
	return best
}
