package main

import (
	_ "embed" // for the script
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

//go:embed program/apache.sh
var apacheScript []byte

// apacheRequests is the number of requests of ab, after which the start of the server counts little.
const apacheRequests = 10_000

// apache compares the processor time of ab and apache2, both under heddle and both under qemu-x86_64, from start to
// end. The server under qemu-x86_64 listens on a free port of the host's loopback interface.
func apache(s *setting) (result, error) {
	r := result{
		title:  "ab and apache2 (event, 8 threads), requests in a second of processor time, in ratio to qemu-x86_64",
		target: "at least 0.30",
	}
	for _, program := range []string{"/usr/sbin/apache2", "/usr/bin/ab"} {
		if _, err := os.Stat(program); err != nil {
			r.measured = "not measured: " + program + " is missing (internal/setup/packages.sh servers)"
			return r, nil
		}
	}
	script := filepath.Join(s.dir, "apache.sh")
	if err := os.WriteFile(script, apacheScript, 0o644); err != nil {
		return r, err
	}
	if err := os.Chmod(s.dir, 0o755); err != nil { // the server's threads have a user of their own
		return r, err
	}
	port, err := freePort()
	if err != nil {
		return r, err
	}
	serve := func(folder string, runner ...string) []string {
		return append([]string{"bash", script, folder, port, strconv.Itoa(apacheRequests)}, runner...)
	}
	mine, qemu, err := s.turns(
		func() (timing, error) {
			return s.underHeddle(nil, []string{"--cores=4", "--mount=" + s.dir + ":" + s.dir}, serve("/tmp/apache")...)
		},
		func() (timing, error) { return s.run(serve(filepath.Join(s.dir, "apache"), "qemu-x86_64")...) })
	if err != nil {
		return r, err
	}
	a, b := leastProcessor(mine).Seconds(), leastProcessor(qemu).Seconds()
	share := b / a
	r.measured = fmt.Sprintf("%.2f (%.0f against %.0f a second)", share, apacheRequests/a, apacheRequests/b)
	r.met = share >= 0.3
	return r, nil
}

// freePort is a TCP port that nothing on the host listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
