package explore

import (
	"github.com/heddle-dmt/heddle/sched/dpor"
)

func (r *runner) hasStores(t *thread) bool { return false }

func (r *runner) appendBuffers(list []dpor.Process) []dpor.Process { return list }

func (r *runner) commitPrivate() {}

func (r *runner) commit(p dpor.Process) {}

func (r *runner) appendCommits(list []dpor.Event) []dpor.Event { return list }
