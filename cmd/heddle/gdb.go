package main

import (
	"context"
	"errors"
	"net"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/debug"
)

var (
	errGDBAddress = errs.Define("gdb-address",
		"cannot wait for GDB at {address}",
		"The address of --gdb is not HOST:PORT, the port is in use or needs privileges, or the host is not this one; the rest of the sentence says which.",
		"Name a free port, such as localhost:1234; port 0 chooses one.")
	errGDBAlone = errs.Define("gdb-and-other",
		"--gdb cannot be used with {option}",
		"GDB takes the run backwards and forwards, and the option would act more than once.",
		"Leave one of the two out; the run is the same without GDB.")
)

// gdbUsage describes the flag.
const gdbUsage = "wait for GDB at `ADDRESS` (host:port) and let it take the run forwards and backwards"

// carryOut runs a configuration, under GDB if there is an address for it.
func (a *app) carryOut(ctx context.Context, c machine.Config, gdb string, options ...machine.Option) (*machine.Result, error) {
	if a.region != nil {
		options = append(options, job.WithRegion(a.region))
	}
	if gdb == "" {
		return machine.Run(ctx, c, options...)
	}
	l, err := net.Listen("tcp", gdb)
	if err != nil {
		return nil, errGDBAddress.Wrap(listenReason(err), gdb)
	}
	defer l.Close()
	m, err := machine.New(c, options...)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	a.say("waiting for GDB: target remote %s", l.Addr())
	stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // ends Accept
	defer stop()
	if err := debug.Serve(m, l); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return m.Run(ctx)
}

// listenReason is an error of net.Listen without the names of the call and the address.
func listenReason(err error) error {
	var call *net.OpError
	if !errors.As(err, &call) {
		return err
	}
	var address *net.AddrError
	if errors.As(call.Err, &address) {
		return &net.AddrError{Err: address.Err}
	}
	var number unix.Errno
	if errors.As(call.Err, &number) {
		return number
	}
	return call.Err
}
