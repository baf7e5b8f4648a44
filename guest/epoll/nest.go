package epoll

// Bounds of nested instances, fs/eventpoll.c.
const (
	// maxNests is how many instances can be above or below another.
	maxNests = 4
	// maxPaths bounds the ways in which an event below reaches instances above.
	maxPaths = 1000
)

// wouldLoop reports whether i must not watch below.
func (i *Instance) wouldLoop(below *Instance) bool {
	down := below.depth(i, 0)
	return down > maxNests || down+1+i.height(0) > maxNests
}

// depth is the length of the longest chain of instances below i, more than
// maxNests if it is too long or meets the instance that is to be above.
func (i *Instance) depth(top *Instance, level int) int {
	if i == top || level > maxNests {
		return maxNests + 1
	}
	deepest := 0
	for k := range i.entries { // the order does not matter
		if below, ok := k.file.Impl.(*Instance); ok {
			deepest = max(deepest, below.depth(top, level+1)+1)
		}
	}
	return deepest
}

// height is the length of the longest chain of instances above i.
func (i *Instance) height(level int) int {
	highest := 0
	if level <= maxNests {
		for _, e := range i.above {
			highest = max(highest, e.instance.height(level+1)+1)
		}
	}
	return highest
}

// tooManyPaths reports whether an event of i, or of an instance below it, would
// be passed on in too many ways.
func (i *Instance) tooManyPaths(seen map[*Instance]bool) bool {
	if seen[i] {
		return false
	}
	seen[i] = true
	if i.paths(maxPaths) > maxPaths {
		return true
	}
	for k := range i.entries { // the order does not matter
		if below, ok := k.file.Impl.(*Instance); ok && below.tooManyPaths(seen) {
			return true
		}
	}
	return false
}

// paths counts the ways up from i until there are more than limit.
func (i *Instance) paths(limit int) int {
	n := 0
	for _, e := range i.above {
		if n > limit {
			break
		}
		n += 1 + e.instance.paths(limit-n)
	}
	return n
}
