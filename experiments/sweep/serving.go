package sweep

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/heddle-dmt/heddle/experiments/servers"
	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/guest/requests"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/sched"
)

// The functions of this file are about programs that are a server with its client.

// loadServer reads the server's file.
func (p *Program) loadServer(dir string) error {
	path := p.Server
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	server, err := servers.Load(path, p.Client...)
	if err != nil {
		return err
	}
	p.server = server
	if p.Name == "" {
		p.Name = server.Name
	}
	return nil
}

// checkServer returns the first field of a program that is wrong because the program is a server, or has a client without a server.
func (x *Experiment) checkServer(p Program, field string) error {
	switch {
	case p.server == nil && len(p.Client) > 0:
		return fieldError(field+"client", p.Client[0], "no client, unless the program has a server")
	case p.server == nil:
		return nil
	case len(p.Command) > 0:
		return fieldError(field+"command", p.Command[0], "no command beside a server, whose file has it")
	case p.Stdin != "":
		return fieldError(field+"stdin", p.Stdin, "no standard input for a server")
	case x.Machine.Dir != "" || x.Machine.Region != "":
		return fieldError("machine", "one with dir or region", "neither of them with a server")
	}
	if pattern := p.server.Missing(); x.Machine.RootFS == "" && pattern != "" {
		return fieldError(field+"server", p.Server, fmt.Sprintf("a server whose programs the host has: %s is missing (packages: %v)", pattern, p.server.Packages))
	}
	most := sched.MaxCores - p.server.ClientCores
	for i, c := range x.Grid.Cores {
		if c.AsThreads || c.Count > most {
			return fieldError(fmt.Sprintf("grid.cores[%d]", i), c.String(), fmt.Sprintf("1 to %d cores of a server, whose client has others", most))
		}
	}
	if len(x.Grid.Cores) == 0 && x.Machine.Cores > most {
		return fieldError("machine.cores", x.Machine.Cores, fmt.Sprintf("1 to %d cores of a server, whose client has others", most))
	}
	return nil
}

// hasServers reports whether a program is a server.
func (x *Experiment) hasServers() bool {
	return slices.ContainsFunc(x.Programs, func(p Program) bool { return p.server != nil })
}

// serveAt makes a job one of a server at a point.
func (x *Experiment) serveAt(s *servers.Server, at Point, j *job.Job) {
	values := map[string]string{}
	for _, a := range at.Arguments {
		values[a.Name] = a.Value
	}
	if at.Threads > 0 {
		values["threads"] = strconv.Itoa(at.Threads)
	}
	j.Options.Cores = s.MachineCores(at.Cores)
	if x.Windows.Schedules != "" {
		shared := *s // the guest sees the cores of the recorded run, to which no process can be bound on other machines
		shared.ClientCores = 0
		s = &shared
	}
	if o := &j.Options; !slices.Contains(o.Requests, s.Port) {
		o.Requests = append(slices.Clone(o.Requests), s.Port)
	}
	j.Args = s.Args(at.Cores, values)
}

// failureOfServer is the sentence on a run of a server that did not end as it should, or empty.
func failureOfServer(s *servers.Server, r job.Report) string {
	switch {
	case r.Result == nil:
		return ""
	case r.Result.ExitCode != 0:
		return s.Failure(r.Result, r.StderrText)
	}
	if _, ok := clientsOf(s, r.Result.Requests); !ok {
		return fmt.Sprintf("%s: no request of a program %s was answered on port %d", s.Name, s.Clients, s.Port)
	}
	return ""
}

// clientsOf returns the summary of the requests of a server's clients.
func clientsOf(s *servers.Server, list []requests.Summary) (requests.Summary, bool) {
	for _, r := range list {
		if r.Port == s.Port && r.Client == s.Clients && r.Requests > 0 {
			return r, true
		}
	}
	return requests.Summary{}, false
}

// requestMeasures are those of experiments with servers, of the requests of their clients. Programs that are no servers have none.
var requestMeasures = []measure{
	requestMeasure("requests", "", true, func(s requests.Summary) float64 { return float64(s.Requests) }),
	requestMeasure("unanswered", "", true, func(s requests.Summary) float64 { return float64(s.Unanswered) }),
	requestMeasure("throughput", "1/s", false, func(s requests.Summary) float64 { return s.PerSecond }),
	requestMeasure("response_mean", "us", false, func(s requests.Summary) float64 { return s.Response.Mean }),
	requestMeasure("response_p50", "us", false, func(s requests.Summary) float64 { return s.Response.P50 }),
	requestMeasure("response_p90", "us", false, func(s requests.Summary) float64 { return s.Response.P90 }),
	requestMeasure("response_p99", "us", false, func(s requests.Summary) float64 { return s.Response.P99 }),
	requestMeasure("response_max", "us", false, func(s requests.Summary) float64 { return s.Response.Max }),
	requestMeasure("service_mean", "us", false, func(s requests.Summary) float64 { return s.Service.Mean }),
	requestMeasure("service_p50", "us", false, func(s requests.Summary) float64 { return s.Service.P50 }),
	requestMeasure("service_p90", "us", false, func(s requests.Summary) float64 { return s.Service.P90 }),
	requestMeasure("service_p99", "us", false, func(s requests.Summary) float64 { return s.Service.P99 }),
	requestMeasure("service_max", "us", false, func(s requests.Summary) float64 { return s.Service.Max }),
}

// usualRequestMeasures are in a table that names no others.
var usualRequestMeasures = []string{"requests", "throughput", "response_p50", "response_p90", "response_p99", "response_max"}

func requestMeasure(name, unit string, whole bool, of func(requests.Summary) float64) measure {
	return measure{name: name, title: name, unit: unit, whole: whole, of: func(run Run, r store.Record) float64 {
		if run.server == nil {
			return math.NaN()
		}
		s, ok := clientsOf(run.server, r.Report.Result.Requests)
		if !ok {
			return math.NaN()
		}
		return of(s)
	}}
}
