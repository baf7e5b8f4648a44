package requests_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/guest/requests"
)

// guest is a kernel with a clock and one process.
type guest struct{ now int64 }

func (g *guest) Now() int64 { return g.now }

func (g *guest) CommandOf(pid int32) string {
	if pid == 7 {
		return "ab"
	}
	return ""
}

// TestExchanges: which bytes belong to which request.
func TestExchanges(t *testing.T) {
	type step func(l *requests.Log, c int)
	arrive := func(n int) step { return func(l *requests.Log, c int) { l.Arrive(c, n) } }
	write := func(n int) step { return func(l *requests.Log, c int) { l.Write(c, n) } }
	read := func(l *requests.Log, c int) { l.Read(c) }
	never := int64(requests.Never)
	for name, x := range map[string]struct {
		steps   []step // at 10, 20, ...
		want    []requests.Request
		greeted uint64
	}{
		"one": {[]step{arrive(3), read, write(5)}, []requests.Request{{0, 10, 20, 30, 30, 3, 5}}, 0},
		"in pieces, with a reply in pieces": {
			[]step{arrive(3), read, arrive(4), read, write(1), write(2)},
			[]requests.Request{{0, 10, 20, 50, 60, 7, 3}},
			0,
		},
		"two in turn":       {[]step{arrive(1), read, write(2), arrive(3), read, write(4)}, []requests.Request{{0, 10, 20, 30, 30, 1, 2}, {0, 40, 50, 60, 60, 3, 4}}, 0},
		"pipelined":         {[]step{arrive(1), arrive(2), read, write(3), write(4)}, []requests.Request{{0, 10, 30, 40, 50, 3, 7}}, 0},
		"during the reply":  {[]step{arrive(1), read, write(2), arrive(3), write(4), read, write(5)}, []requests.Request{{0, 10, 20, 30, 50, 1, 6}, {0, 40, 60, 70, 70, 3, 5}}, 0},
		"greeting":          {[]step{write(9), arrive(1), read, write(2)}, []requests.Request{{0, 20, 30, 40, 40, 1, 2}}, 9},
		"without a reply":   {[]step{arrive(1), read}, []requests.Request{{0, 10, 20, never, never, 1, 0}}, 0},
		"without a read":    {[]step{arrive(1), write(4)}, []requests.Request{{0, 10, never, never, never, 1, 0}}, 4},
		"nothing but reads": {[]step{read}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := &guest{}
			l := requests.NewLog([]uint16{80}, g)
			c := l.Open(80, 7)
			for i, s := range x.steps {
				g.now = int64(i+1) * 10
				s(l, c)
			}
			if !slices.Equal(l.Requests, x.want) {
				t.Errorf("%+v, not %+v", l.Requests, x.want)
			}
			if got := l.Connections[c].Greeted; got != x.greeted {
				t.Errorf("%d bytes before any request, not %d", got, x.greeted)
			}
		})
	}
}

func TestConnections(t *testing.T) {
	g := &guest{now: 5}
	l := requests.NewLog([]uint16{80, 443}, g)
	if !l.Observes(443) || l.Observes(8080) || (*requests.Log)(nil).Observes(80) {
		t.Error("observes the wrong ports")
	}
	c := l.Open(443, 7)
	g.now = 6
	l.Accept(c)
	g.now = 7
	l.Close(c)
	g.now = 8
	l.Close(c)
	got := l.Connections[c]
	if got.Port != 443 || got.Client != "ab" || got.ClientPID != 7 || got.Opened != 5 || got.Accepted != 6 || got.Closed != 7 {
		t.Errorf("%+v", got)
	}
}

// TestSummaries compares distributions with ones counted from their definition: the least time that
// so many of the times do not exceed.
func TestSummaries(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 9, 10, 99, 100, 101, 1000} {
		g := &guest{}
		l := requests.NewLog([]uint16{80}, g)
		var response, service []int64
		for range n {
			c := l.Open(80, 7)
			l.Accept(c)
			arrived := g.now
			l.Arrive(c, 10)
			g.now += int64(r.IntN(500_000))
			read := g.now
			l.Read(c)
			g.now += int64(r.IntN(500_000))
			l.Write(c, 20)
			response, service = append(response, g.now-arrived), append(service, g.now-read)
		}
		end := g.now
		lost := l.Open(80, 7) // one that the server never accepts
		l.Arrive(lost, 1)
		list := l.Summarize()
		if len(list) != 1 {
			t.Fatalf("%d summaries", len(list))
		}
		s := list[0]
		if s.Port != 80 || s.Client != "ab" || s.Connections != n+1 || s.Refused != 1 || s.Requests != n || s.Unanswered != 1 || s.Received != uint64(10*n+1) || s.Sent != uint64(20*n) {
			t.Errorf("%+v", s)
		}
		if want := float64(end) / 1e9; s.Seconds != want || s.PerSecond != float64(n)/want {
			t.Errorf("%v s and %v a second, not %v s", s.Seconds, s.PerSecond, want)
		}
		for _, x := range []struct {
			times requests.Times
			ns    []int64
		}{{s.Response, response}, {s.Service, service}} {
			for percent, got := range map[int]float64{50: x.times.P50, 90: x.times.P90, 99: x.times.P99, 100: x.times.Max} {
				if want := atMost(x.ns, percent); got != float64(want)/1e3 {
					t.Errorf("%d times, %d %%: %v us, not %v ns", n, percent, got, want)
				}
			}
		}
	}
}

// atMost is the least of the times that percent of them do not exceed.
func atMost(ns []int64, percent int) int64 {
	sorted := slices.Sorted(slices.Values(ns))
	for _, n := range sorted {
		below := 0
		for _, other := range ns {
			if other <= n {
				below++
			}
		}
		if below*100 >= percent*len(ns) {
			return n
		}
	}
	panic("no time")
}

// TestClientsApart: clients of other names and other ports have summaries of their own.
func TestClientsApart(t *testing.T) {
	l := requests.NewLog([]uint16{80, 443}, &guest{})
	for _, x := range []struct {
		port   uint16
		client int32
	}{{443, 7}, {80, 7}, {443, 0}, {80, 7}} {
		l.Open(x.port, x.client)
	}
	var got []string
	for _, s := range l.Summarize() {
		got = append(got, s.String())
	}
	want := []string{
		"port 80, ab: 2 connections without a request",
		"port 443, the host's clients: 1 connections without a request",
		"port 443, ab: 1 connections without a request",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if list := (*requests.Log)(nil).Summarize(); list != nil {
		t.Errorf("without a log: %v", list)
	}
}
