package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/experiments/servers"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// serverSettings are those of the table of servers.
type serverSettings struct {
	// Cores are the server's; its client has further ones.
	Cores   int          `mapstructure:"cores"`
	Servers []serverLoad `mapstructure:"servers"`
}

// serverLoad is a server with its client (package servers), and the paper's numbers.
type serverLoad struct {
	// Server is the server's file, relative to the settings; Values replace those of the file.
	Server string            `mapstructure:"server"`
	Values map[string]string `mapstructure:"values"`
	Paper  string            `mapstructure:"paper"`
	Load   string            `mapstructure:"load"`
	// Requests are those of the load, and Factor how many times the paper's has more.
	Requests int    `mapstructure:"requests"`
	Factor   int    `mapstructure:"factor"`
	Reported string `mapstructure:"reported"`
}

// planServers lays out the table of servers under Frost.
func planServers(o *study.Options) (*study.Plan, error) {
	var s serverSettings
	file, err := o.Load(&s)
	if err != nil {
		return nil, err
	}
	plan := &study.Plan{Head: []table.Column{
		{Name: "the paper's", Key: "paper"},
		{Name: "ours", Key: "program"},
		{Name: "load", Key: "load"},
		{Name: "requests", Key: "requests", Number: true},
		{Name: "paper's / ours", Key: "factor", Number: true},
		{Name: "without Frost, ms", Key: "plain", Number: true},
		{Name: "with Frost, ms", Key: "frost", Number: true},
		{Name: "more, %", Key: "overhead", Number: true},
		{Name: "paper, %", Key: "paper_overhead", Number: true},
		{Name: "epochs", Key: "epochs", Number: true},
		{Name: "with a race", Key: "races", Number: true},
		{Name: "ends", Key: "ends"},
	}, Notes: []string{
		fmt.Sprintf("On %d cores for the server, with the start and the end of the server; the client is a process of the same machine with cores", s.Cores),
		"of its own, and Frost checks it as well. With Frost: virtual time with cores to spare. Epochs with a race are executed three times again.",
	}}
	if s.Cores < 1 || s.Cores > sched.MaxCores/2 {
		return nil, file.Wrong("cores", s.Cores, fmt.Sprintf("1 to %d", sched.MaxCores/2))
	}
	var list []*servers.Server
	var names []string
	for i, l := range s.Servers {
		server, err := servers.Load(filepath.Join(filepath.Dir(o.Config), l.Server))
		if err != nil {
			return nil, err
		}
		if l.Requests < 1 || l.Factor < 1 {
			return nil, file.Wrong(fmt.Sprintf("servers[%d]", i), l.Requests, "requests and factor of 1 and more")
		}
		list, names = append(list, server), append(names, server.Name)
	}
	wanted, err := o.Only(names)
	if err != nil {
		return nil, err
	}
	for i, l := range s.Servers {
		server := list[i]
		if !wanted(server.Name) {
			continue
		}
		missing := server.Missing()
		plan.Rows = append(plan.Rows, study.Row{Name: server.Name, Key: []any{l, server, s.Cores, missing}, Measure: func(ctx context.Context) ([]string, error) {
			head := []string{l.Paper, server.Name, l.Load, fmt.Sprint(l.Requests), fmt.Sprint(l.Factor)}
			if missing != "" {
				return append(head, "-", "-", "-", l.Reported, "-", "-", fmt.Sprintf("not measured: the host has no %s", missing)), nil
			}
			cells, err := measureServer(ctx, server, l, s.Cores)
			return append(head, cells...), err
		}})
	}
	return plan, nil
}

// measureServer runs a server with its load without Frost and with it, and returns the cells from "without Frost" on.
func measureServer(ctx context.Context, server *servers.Server, l serverLoad, cores int) ([]string, error) {
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Cores, c.Seed = server.Args(cores, l.Values), "/tmp", server.MachineCores(cores), 1
	c.UID, c.GID = 0, 0
	plain, err := timeWithoutFrost(ctx, c)
	if err != nil {
		return nil, err
	}
	r, out, err := trial(ctx, c, frost.DefaultOptions())
	if err != nil {
		return nil, err
	}
	ends := "as without Frost"
	if r.Result.ExitCode != 0 {
		ends = server.Failure(r.Result, []byte(out))
	}
	return []string{
		fmt.Sprintf("%.3f", plain), fmt.Sprintf("%.3f", r.Pipeline), number(100 * (r.Pipeline/plain - 1)), l.Reported,
		fmt.Sprint(r.Committed), fmt.Sprint(r.Races), ends,
	}, nil
}
