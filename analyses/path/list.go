package path

// list is a list that grows without being copied. What is added together lies
// together.
type list[T any] struct {
	chunks []*[chunkSize]T
	used   int // places, those that were skipped among them
}

const chunkSize = 1 << 14

func (l *list[T]) len() int { return l.used }

func (l *list[T]) at(i int) *T { return &l.chunks[i/chunkSize][i%chunkSize] }

// add adds one.
func (l *list[T]) add() *T {
	_, s := l.grow(1)
	return &s[0]
}

// grow adds n, of no more than a chunk, and returns where they are.
func (l *list[T]) grow(n int) (int, []T) {
	if room := len(l.chunks)*chunkSize - l.used; n > room {
		l.used += room
		l.chunks = append(l.chunks, new([chunkSize]T))
	}
	at := l.used
	l.used += n
	return at, l.slice(at, n)
}

// slice is n of them that were added together.
func (l *list[T]) slice(at, n int) []T {
	if n == 0 {
		return nil
	}
	return l.chunks[at/chunkSize][at%chunkSize:][:n]
}
