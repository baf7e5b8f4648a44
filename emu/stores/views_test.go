package stores_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"pgregory.net/rapid"
)

// viewModel is the memory of a process with views, as docs/dmt.md defines them: brute force, with a copy of all bytes.
type viewModel struct {
	space  *mem.Space
	shared [4 * arch.PageSize]byte
	views  map[int]*viewCopy
}

type viewCopy struct{ before, now [4 * arch.PageSize]byte }

func (m *viewModel) memory(thread int) *[4 * arch.PageSize]byte {
	if v := m.views[thread]; v != nil {
		return &v.now
	}
	return &m.shared
}

func (m *viewModel) commit(thread int) {
	v := m.views[thread]
	for i := range v.now {
		if v.now[i] != v.before[i] {
			m.shared[i] = v.now[i]
		}
	}
	delete(m.views, thread)
}

// TestViews: random threads load and store with and without views, which begin, are committed and
// discarded in any order; the kernel stores in between; the machine returns to an earlier state; and
// the process forks, with threads of the parent and of the child. All loads return what they do in the model.
func TestViews(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		rapid.Check(t, func(r *rapid.T) {
			v := newPrivateBench(t, e, map[string]string{"store": "mov [rbx], al", "load": "movzx eax, byte ptr [rbx]", "rep": "mov rdi, rbx\nmov ecx, 8\nrep stosb"})
			v.private.UseViews()
			parent := &viewModel{space: v.Space, views: map[int]*viewCopy{}}
			child := parent
			process := func(thread int) *viewModel { return []*viewModel{parent, child}[thread%2] }
			run := func(thread int, name string, at int, value byte) byte {
				m := process(thread)
				v.CPU.Load(v.ctx[thread], m.space)
				v.ChangeRegs(func(r *arch.Regs) {
					r.RIP, r.RFLAGS = uint64(v.at[name]), 0x202
					r.GPR[arch.RBX], r.GPR[arch.RAX] = uint64(dataBase)+uint64(at), uint64(value)
				})
				core := arch.CoreID(0)
				if m.views[thread] != nil {
					core = arch.CoreID(1 + 7*thread) // more than the engine's cores
				}
				v.private.Begin(core, arch.ThreadID(10+thread))
				if stop := v.CPU.Run(arch.Limit{}); stop.Reason != arch.StopSyscall {
					r.Fatalf("%s stopped for reason %d", name, stop.Reason)
				}
				v.private.End()
				return byte(v.Regs().GPR[arch.RAX])
			}
			for range rapid.IntRange(1, 60).Draw(r, "steps") {
				thread := rapid.IntRange(0, 3).Draw(r, "thread")
				core := arch.CoreID(1 + 7*thread)
				at := rapid.IntRange(0, 3).Draw(r, "page")*arch.PageSize + rapid.IntRange(0, 20).Draw(r, "byte")
				value := rapid.Byte().Draw(r, "value")
				m := process(thread)
				switch rapid.IntRange(0, 7).Draw(r, "step") {
				case 0:
					run(thread, "store", at, value)
					m.memory(thread)[at] = value
				case 1:
					run(thread, "rep", at, value)
					for i := range 8 {
						m.memory(thread)[at+i] = value
					}
				case 2, 3:
					if got, want := run(thread, "load", at, 0), m.memory(thread)[at]; got != want {
						r.Fatalf("thread %d loads %d from %#x, want %d", thread, got, at, want)
					}
				case 4:
					if m.views[thread] == nil {
						v.private.View(core, arch.ThreadID(10+thread), m.space)
						m.views[thread] = &viewCopy{m.shared, m.shared}
					} else if value%8 == 0 {
						v.private.Discard(core)
						delete(m.views, thread)
					} else {
						v.private.Drain(core)
						m.commit(thread)
					}
				case 5:
					if _, fault := m.space.WriteAt([]byte{value}, dataBase+arch.Addr(at)); fault != arch.NoFault {
						r.Fatal(fault)
					}
					m.shared[at] = value
				case 6:
					saved := v.private.Save()
					saved.Load(func(t arch.ThreadID) *mem.Space { return process(int(t) - 10).space })
					saved.Release()
				case 7:
					if child == parent && m.views[1] == nil && m.views[3] == nil {
						child = &viewModel{parent.space.Clone(), parent.shared, map[int]*viewCopy{}}
						defer child.space.Release()
					}
				}
			}
		})
	})
}
