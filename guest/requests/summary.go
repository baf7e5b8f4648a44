package requests

import (
	"cmp"
	"fmt"
	"slices"
)

// Summary describes the requests of all clients of one name to one port. Times are virtual.
type Summary struct {
	// Port is the observed port, and Client the name of the clients' program; empty for clients on the
	// host.
	Port   uint16 `json:"port"`
	Client string `json:"client"`
	// Connections counts the clients' connections, and Refused how many the server never accepted.
	Connections int `json:"connections"`
	Refused     int `json:"refused"`
	// Requests counts requests with a reply, and Unanswered those without.
	Requests   int `json:"requests"`
	Unanswered int `json:"unanswered"`
	// Received and Sent are the bytes of the requests and of the replies.
	Received uint64 `json:"received_bytes"`
	Sent     uint64 `json:"sent_bytes"`
	// Seconds is the time from the arrival of the first request to the end of the last reply, and
	// PerSecond the number of Requests in a second of it; 0 without requests.
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
	// Response is from the arrival of a request to the last byte of its reply, Service from the server's first
	// read.
	Response Times `json:"response"`
	Service  Times `json:"service"`
}

// Times is the distribution of a time over requests with a reply, in microseconds. P50 is the least of them
// that is not below half of them all, and so on (nearest rank).
type Times struct {
	Mean float64 `json:"mean_us"`
	P50  float64 `json:"p50_us"`
	P90  float64 `json:"p90_us"`
	P99  float64 `json:"p99_us"`
	Max  float64 `json:"max_us"`
}

func (s Summary) String() string {
	client := cmp.Or(s.Client, "the host's clients")
	switch {
	case s.Requests == 0 && s.Unanswered == 0:
		return fmt.Sprintf("port %d, %s: %d connections without a request", s.Port, client, s.Connections)
	case s.Requests == 0:
		return fmt.Sprintf("port %d, %s: no request was answered, %d were not", s.Port, client, s.Unanswered)
	}
	return fmt.Sprintf("port %d, %s: %d requests, %d without a reply, %.0f a second, response time 50 %%: %.0f us, 90 %%: %.0f us, 99 %%: %.0f us, longest %.0f us",
		s.Port, client, s.Requests, s.Unanswered, s.PerSecond, s.Response.P50, s.Response.P90, s.Response.P99, s.Response.Max)
}

// Summarize describes the requests of each port and client, sorted by port and client's name.
func (l *Log) Summarize() (list []Summary) {
	if l == nil {
		return nil
	}
	groups := map[group][]*Request{}
	for i := range l.Requests {
		r := &l.Requests[i]
		g := groupOf(&l.Connections[r.Connection])
		groups[g] = append(groups[g], r)
	}
	at := map[group]int{}
	for i := range l.Connections {
		c := &l.Connections[i]
		g := groupOf(c)
		k, known := at[g]
		if !known {
			k = len(list)
			at[g] = k
			list = append(list, summarize(g, groups[g]))
		}
		list[k].Connections++
		if c.Accepted == Never {
			list[k].Refused++
		}
	}
	slices.SortFunc(list, func(a, b Summary) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Client, b.Client))
	})
	return list
}

// group is a port and a program of clients.
type group struct {
	port   uint16
	client string
}

func groupOf(c *Connection) group { return group{c.Port, c.Client} }

// summarize describes the requests of a group, which are in the order of their arrival.
func summarize(g group, list []*Request) Summary {
	s := Summary{Port: g.port, Client: g.client}
	var response, service []int64
	var end int64
	for _, r := range list {
		s.Received += r.Received
		if !r.IsAnswered() {
			s.Unanswered++
			continue
		}
		s.Requests++
		s.Sent += r.Sent
		end = max(end, r.Ended)
		response = append(response, r.Ended-r.Arrived)
		service = append(service, r.Ended-r.Read)
	}
	if s.Requests == 0 {
		return s
	}
	if ns := end - list[0].Arrived; ns > 0 {
		s.Seconds = float64(ns) / 1e9
		s.PerSecond = float64(s.Requests) / s.Seconds
	}
	s.Response, s.Service = distribution(response), distribution(service)
	return s
}

// distribution describes times in ns, of which there is at least one.
func distribution(ns []int64) Times {
	slices.Sort(ns)
	sum := 0.0
	for _, n := range ns {
		sum += float64(n)
	}
	us := func(n int64) float64 { return float64(n) / 1e3 }
	rank := func(percent int) float64 { return us(ns[(len(ns)*percent+99)/100-1]) }
	return Times{Mean: sum / float64(len(ns)) / 1e3, P50: rank(50), P90: rank(90), P99: rank(99), Max: us(ns[len(ns)-1])}
}
