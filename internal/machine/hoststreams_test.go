package machine_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/errname"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
)

// limited takes some bytes and fails for the rest.
type limited struct {
	bytes.Buffer
	most  int
	errno unix.Errno
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.most-l.Len())
	l.Buffer.Write(p[:n])
	if n < len(p) {
		return n, l.errno
	}
	return n, nil
}

// failing reads some bytes and fails for the rest.
type failing struct {
	io.Reader
	errno unix.Errno
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err == io.EOF {
		err = f.errno
	}
	return n, err
}

// copies copies input to output in pieces of 100 bytes, prints the result of each call
// on standard error, and ends with the errno of the last.
const copies = `
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
	char b[100];
	long n, m;
	signal(SIGPIPE, SIG_IGN);
	do {
		errno = 0;
		n = read(0, b, sizeof b);
		m = n > 0 ? write(1, b, n) : 0;
		dprintf(2, "%ld %ld %d\n", n, m, errno);
	} while (n > 0 && m > 0);
	return errno;
}`

func TestStreamFaultsAreInputs(t *testing.T) {
	program := machinetest.Compile(t, copies)
	text := bytes.Repeat([]byte("0123456789"), 100)
	for _, test := range []struct {
		most, input int
		errno       unix.Errno
		want        machine.StreamFault
	}{
		{250, 1000, unix.ENOSPC, machine.StreamFault{FD: 1, Bytes: 250, Errno: errname.Name(unix.ENOSPC)}},
		{0, 1000, unix.EPIPE, machine.StreamFault{FD: 1, Bytes: 0, Errno: errname.Name(unix.EPIPE)}},
		{1000, 1000, unix.EISDIR, machine.StreamFault{FD: 0, Bytes: 1000, Errno: errname.Name(unix.EISDIR)}},
		{1000, 730, unix.EAGAIN, machine.StreamFault{FD: 0, Bytes: 730, Errno: errname.Name(unix.EIO)}},
	} {
		c, _ := machinetest.Config(t, program)
		var out limited
		stdin := &failing{bytes.NewReader(text[:test.input]), test.errno}
		out = limited{most: test.most, errno: test.errno}
		c.Stdin, c.Stdout = stdin, &out
		to := traceFile(t)
		c.Record = &machine.Record{To: to}
		first := machinetest.Run(t, c)
		if !slices.Equal(first.Faults, []machine.StreamFault{test.want}) || first.ExitCode != int(test.want.Errno) {
			t.Fatalf("faults %+v, status %d; want %+v", first.Faults, first.ExitCode, test.want)
		}
		// Given the fault, the run is the same, and takes no more than was taken.
		var again bytes.Buffer
		c.Stdin, c.Stdout, c.Record, c.Faults = bytes.NewReader(text), &again, nil, first.Faults
		second := machinetest.Run(t, c)
		machinetest.CompareResults(t, second, first)
		if !slices.Equal(second.Faults, first.Faults) || !bytes.Equal(again.Bytes(), out.Bytes()) {
			t.Errorf("faults %+v; it wrote %d bytes, not %d", second.Faults, again.Len(), out.Len())
		}
		result, printed := replayed(t, to.Name(), func(c *machine.Config) { c.Stderr = nil })
		machinetest.CompareResults(t, result, first)
		if printed != out.String() {
			t.Errorf("the replay wrote %d bytes, not %d", len(printed), out.Len())
		}
	}
}

// TestStreamFaultsAreRestored: a snapshot of before a fault meets it at the same byte.
func TestStreamFaultsAreRestored(t *testing.T) {
	c, _ := machinetest.Config(t, machinetest.Compile(t, copies))
	out := &limited{most: 250, errno: unix.ENOSPC}
	c.Stdin, c.Stdout = bytes.NewReader(make([]byte, 1000)), out
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	begin := m.Snapshot()
	defer begin.Release()
	result, err := m.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	first := *result
	m.Restore(begin)
	out.Reset()
	again, err := m.Run(context.Background())
	if err != nil || again.Digest != first.Digest || out.Len() != 250 {
		t.Errorf("%v; digest %s, was %s; %d bytes", err, again.Digest, first.Digest, out.Len())
	}
}

// TestReplayWithoutOutputEnds: output that the program believes to be written is lost.
func TestReplayWithoutOutputEnds(t *testing.T) {
	c, _ := machinetest.Config(t, "/bin/sh", "-c", "while :; do echo; done")
	c.MaxInstructions = 5_000_000
	to := traceFile(t)
	c.Record = &machine.Record{To: to}
	first := machinetest.Run(t, c)
	r, err := machine.OpenReplay(to.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if c, err = r.Config(); err != nil {
		t.Fatal(err)
	}
	c.Stdout = &limited{most: 10, errno: unix.EPIPE}
	result, err := machine.Run(context.Background(), c)
	if err == nil || result.Instructions >= first.Instructions/2 {
		t.Errorf("%v; %d instructions of %d", err, result.Instructions, first.Instructions)
	}
}
