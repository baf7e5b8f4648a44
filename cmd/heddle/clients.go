package main

import (
	"net/netip"
	"strings"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
)

var errPublishAlone = errs.Define("publish-and-other",
	"--publish cannot be used with {option}",
	"The option has the run executed more than once or return to an earlier state, or needs a run that was made before; what clients have sent and were sent cannot be repeated or taken back.",
	"Record the run with heddle record --publish; replays of the recording, under GDB and with every recording, need no clients.")

// checkPublish refuses published ports with options of a run that do not allow clients.
func (f *runFlags) checkPublish(options job.Options) error {
	if len(options.Publish) == 0 {
		return nil
	}
	for _, x := range []struct {
		name  string
		given bool
	}{
		{"--verify", f.verify > 0},
		{"--gdb", f.gdb != ""},
		{"--cache", f.cache.dir != ""},
		{"--enforce", f.schedule.file != ""},
	} {
		if x.given {
			return errPublishAlone.New(x.name)
		}
	}
	return nil
}

// withClients lets clients on the host connect to published ports.
func (a *app) withClients() machine.Option { return machine.WithClients(a.sayPort) }

// sayPort says on which port of the host a published port is, if it was chosen.
func (a *app) sayPort(p publish.Port, list []netip.AddrPort) {
	if p.Host != 0 {
		return
	}
	var texts []string
	for _, address := range list {
		texts = append(texts, address.String())
	}
	a.say("port %d of the guest is published on %s", p.Guest, strings.Join(texts, " and "))
}

// sayClients says how the result depends on clients.
func (a *app) sayClients(result *machine.Result) {
	c := result.Clients
	if c == nil {
		return
	}
	if c.Undelivered > 0 {
		a.say("bytes that the guest has sent and that were not delivered, since clients did not take them: %d", c.Undelivered)
	}
	if c.Note != "" {
		a.say("%s", c.Note)
	}
}

// sayRequests describes the requests to the observed ports.
func (a *app) sayRequests(f runFlags, result *machine.Result, ports []uint16) {
	if f.quiet {
		return
	}
	for _, port := range ports {
		silent := true
		for _, s := range result.Requests {
			if s.Port == port {
				a.say("%s", s)
				silent = false
			}
		}
		if silent {
			a.say("port %d: no client has connected", port)
		}
	}
}
