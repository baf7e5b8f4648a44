package served

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/heddle-dmt/heddle/analyses/bytesets"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched/windows"
)

// measureReuse memoizes windows of a part of a load, and has the whole load use their schedules, on another machine (TERN,
// section 8.2.2).
func measureReuse(ctx context.Context, o *study.Options, _ *settings, l *load) (map[string]string, error) {
	all, err := strconv.Atoi(cmp.Or(l.Values[l.Count], l.server.Values[l.Count]))
	if err != nil || l.Share < 1 || all < l.Share {
		return nil, fmt.Errorf("%s: a load whose windows are memoized needs count, and a share of 1 to its number", l.Name)
	}
	o.Say("  %s: memoizing %d of %d requests", l.Name, all/l.Share, all)
	p, store := l.parameters(), windows.NewStore()
	p.NoStates = true
	plain, err := study.ProcessorTimeOf(func() error {
		_, err := l.run(ctx, way{windows: &p, store: windows.NewStore(), requests: all / l.Share})
		return err
	})
	if err != nil {
		return nil, err
	}
	p.Preconditions = true
	var first *outcome
	memoizing, err := study.ProcessorTimeOf(func() (err error) {
		first, err = l.run(ctx, way{windows: &p, store: store, requests: all / l.Share})
		return err
	})
	if err != nil {
		return nil, err
	}
	stored := store.Len()
	checking := timeToCheck(store)
	p.Preconditions = false
	o.Say("  %s: the whole load", l.Name)
	x, err := l.run(ctx, way{number: 1, windows: &p, store: store})
	if err != nil {
		return nil, err
	}
	q, r := &first.report.Preconditions, x.report
	reused, with := r.Exact+r.Admitted, r.Exact+r.Admitted+r.Refused
	bytes := q.FreeBytes + q.LimitedBytes + q.FixedBytes
	return map[string]string{
		"reuse":    fmt.Sprintf("%.1f %%", 100*float64(reused)/float64(max(with, 1))),
		"memoized": fmt.Sprint(first.report.Requests), "schedules": fmt.Sprint(stored),
		"constrained": fmt.Sprintf("%d of %d", q.FixedBytes+q.LimitedBytes, bytes),
		"terms":       fmt.Sprint(q.Terms / max(q.Computed-q.Unknown, 1)),
		"memoizing":   fmt.Sprintf("%.1f", memoizing.Seconds()/plain.Seconds()),
		"checking":    checking,
	}, nil
}

// checks is how often each precondition is checked.
const checks = 200

// timeToCheck is the mean processor time, in microseconds, in which a window is found to be admitted by the precondition of a
// schedule, as admittedBy makes it. A precondition is left out of which it finds no window. "-" stands for no precondition.
func timeToCheck(s *windows.Store) string {
	var spent time.Duration
	n := 0
	for _, schedule := range s.All() {
		if schedule.Patterns == nil {
			continue
		}
		one := windows.NewStore()
		schedule.Exact = 1
		one.Add(0, schedule)
		a := admittedBy(&schedule.Precondition)
		if one.Matching(a) == 0 {
			continue
		}
		took, err := study.ProcessorTimeOf(func() error {
			for range checks {
				if one.Matching(a) != 1 {
					panic("bug: a window is admitted once, and not again")
				}
			}
			return nil
		})
		if err != nil {
			return err.Error()
		}
		spent, n = spent+took, n+checks
	}
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(spent.Nanoseconds())/1000/float64(n))
}

// mostDrawn is how often other values are drawn for bytes on which there are conditions together.
const mostDrawn = 1000

// admittedBy makes a window that a precondition admits: it has the recorded pointers, and the least value of each byte but for
// those of conditions on several bytes, for which other values are drawn until all hold, or mostDrawn times.
func admittedBy(p *windows.Precondition) *windows.Admission {
	type page struct {
		process int32
		number  arch.Addr
	}
	const size = 1 << 12
	memory := map[page]*[size]byte{}
	put := func(process int32, at arch.Addr, v byte) {
		k := page{process, at / size}
		if memory[k] == nil {
			memory[k] = new([size]byte)
		}
		memory[k][at%size] = v
	}
	values := map[place]windows.Values{}
	for i := range p.Hidden {
		h := &p.Hidden[i]
		for at, v := range h.Pattern {
			put(h.Process, h.At+arch.Addr(at), least(v))
			values[place{h.Process, h.At + arch.Addr(at)}] = v
		}
	}
	for i := range p.Pointers {
		x := &p.Pointers[i]
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], x.Value)
		for at, v := range b {
			put(x.Process, x.At+arch.Addr(at), v)
		}
	}
	a := &windows.Admission{Registers: p.Registers, Peek: func(process int32, at arch.Addr, b []byte) int {
		for n := 0; n < len(b); {
			from := memory[page{process, (at + arch.Addr(n)) / size}]
			if from == nil {
				return n
			}
			n += copy(b[n:], from[(at+arch.Addr(n))%size:])
		}
		return len(b)
	}}
	draw := rand.SplitMix(1)
	for range mostDrawn {
		refused := refusedBy(p.Joint, a)
		for _, b := range refused {
			if set := bytesets.Set(values[place{b.Process, b.At}]); set.Len() > 0 {
				put(b.Process, b.At, anyOf(&set, &draw))
			}
		}
		if len(refused) == 0 {
			break
		}
	}
	for _, list := range p.Patterns {
		var b []byte
		for _, v := range list {
			b = append(b, least(v))
		}
		a.Bytes = append(a.Bytes, b)
	}
	return a
}

// place is where a byte of hidden state is.
type place struct {
	process int32
	at      arch.Addr
}

// refusedBy lists the bytes of the conditions on several bytes that do not hold in a window with the recorded pointers.
func refusedBy(j *windows.Joint, a *windows.Admission) (list []windows.StateByte) {
	if j == nil {
		return nil
	}
	values := make([]byte, len(j.Bytes))
	for i, b := range j.Bytes {
		a.Peek(b.Process, b.At, values[i:i+1])
	}
	for _, i := range j.Refuses(values) {
		list = append(list, j.Bytes[i])
	}
	return list
}

// anyOf draws a value of a set that is not empty.
func anyOf(set *bytesets.Set, draw *rand.SplitMix) byte {
	for {
		if v := byte(draw.Below(1 << 8)); set.Has(v) {
			return v
		}
	}
}

// least is the least value of a set.
func least(v windows.Values) byte {
	set := bytesets.Set(v)
	return set.First()
}
