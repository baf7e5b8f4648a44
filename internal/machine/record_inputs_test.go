package machine_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// reads gets something from each kind of input, and prints where it has it.
const reads = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
static void tell(const char *source, const void *p, size_t n) {
	printf("%s %p %zu ", source, p, n);
	for (size_t i = 0; i < n; i++) printf("%02x", ((const unsigned char *)p)[i]);
	printf("\n");
}
static char stdin_bytes[100], file_bytes[100], at_bytes[10], first[3], second[50], pipe_bytes[20], socket_bytes[20],
	message[4], message2[40], random_bytes[24], device[8], large[200000];
int main(int argc, char **argv) {
	int ends[2], pair[2];
	struct timespec now;
	struct timeval day;
	for (int i = 0; i < argc; i++) tell("args", argv[i], strlen(argv[i]) + 1);
	tell("env", getenv("GREETING") - strlen("GREETING="), strlen("GREETING=") + strlen(getenv("GREETING")) + 1);
	tell("random", (void *)getauxval(AT_RANDOM), 16);
	tell("stdin", stdin_bytes, read(0, stdin_bytes, sizeof stdin_bytes));
	int fd = open(argv[1], O_RDONLY);
	tell("file", file_bytes, read(fd, file_bytes, 7));
	tell("file", at_bytes, pread(fd, at_bytes, 5, 3));
	struct iovec iov[] = {{first, sizeof first}, {second, sizeof second}};
	ssize_t n = readv(fd, iov, 2);
	tell("file", first, 3);
	tell("file", second, n - 3);
	pipe(ends);
	write(ends[1], "through a pipe", 14);
	tell("pipe", pipe_bytes, read(ends[0], pipe_bytes, sizeof pipe_bytes));
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	write(pair[1], "by a socket", 11);
	tell("socket", socket_bytes, recv(pair[0], socket_bytes, sizeof socket_bytes, 0));
	struct iovec parts[] = {{message, sizeof message}, {message2, sizeof message2}};
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = 2};
	write(pair[1], "by a message", 12);
	n = recvmsg(pair[0], &header, 0);
	tell("socket", message, 4);
	tell("socket", message2, n - 4);
	tell("random", random_bytes, getrandom(random_bytes, sizeof random_bytes, 0));
	tell("random", device, read(open("/dev/urandom", O_RDONLY), device, sizeof device));
	clock_gettime(CLOCK_REALTIME, &now);
	tell("time", &now, sizeof now);
	gettimeofday(&day, 0);
	tell("time", &day, sizeof day);
	n = read(open(argv[2], O_RDONLY), large, sizeof large);
	tell("file", large, 65536);
	tell("file", large + 65536, 65536);
	tell("file", large + 131072, n - 131072);
	void *map = mmap(0, 5000, PROT_READ, MAP_PRIVATE, fd, 0);
	printf("map %p 5000 \n", map);
	return 0;
}`

// TestInputs: the inputs that the program prints are in the trace, at the addresses that it
// prints, in that order.
func TestInputs(t *testing.T) {
	bin := machinetest.Compile(t, reads)
	dir := filepath.Dir(bin)
	small, large := filepath.Join(dir, "small"), filepath.Join(dir, "large")
	for path, text := range map[string]string{small: "a file of some length, in words", large: strings.Repeat("0123456789abcde\n", 10_000)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, out := machinetest.Config(t, bin, small, large)
	c.Env = append(c.Env, "GREETING=hello")
	c.Stdin = strings.NewReader("what comes in\n")
	r, path := record(t, c, everything)
	if r.ExitCode != 0 {
		t.Fatalf("exit %d: %s", r.ExitCode, out)
	}
	var got []string
	reader, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	names := map[string]bool{}
	for e, err := range trace.Get[event.Input](reader, trace.Key{Kind: trace.Inputs}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %#x %d %s", e.Source, uint64(e.Addr), e.Size, hex.EncodeToString(e.Data)))
		names[e.Name] = true
		if uint64(len(e.Data)) != e.Size && e.Source != event.InputMap {
			t.Errorf("%d bytes of %d: %+v", len(e.Data), e.Size, e)
		}
	}
	for _, want := range strings.Split(strings.TrimRight(out.String(), "\n"), "\n") {
		i := 0
		for i < len(got) && got[i] != want {
			i++
		}
		if i == len(got) {
			t.Fatalf("not in the trace, or not in order: %.200s\nleft: %.2000s", want, strings.Join(got, "\n"))
		}
		got = got[i+1:]
	}
	if !names[small] || !names[large] {
		t.Errorf("files by name: %v", names)
	}
	if _, text := replayed(t, path, nil); text != out.String() {
		t.Error("the replay has other inputs")
	}
}

// TestRecordedStdinEnds: a replay has the standard input of the recorded run,
// however it ended.
func TestRecordedStdinEnds(t *testing.T) {
	for _, in := range []string{"", "a", strings.Repeat("line\n", 100_000)} {
		c, out := machinetest.Config(t, "/bin/cat")
		c.Stdin = struct{ *bytes.Reader }{bytes.NewReader([]byte(in))}
		_, path := record(t, c, everything)
		if out.String() != in {
			t.Fatalf("%d bytes of %d", out.Len(), len(in))
		}
		if _, text := replayed(t, path, nil); text != in {
			t.Errorf("the replay has %d bytes of %d", len(text), len(in))
		}
	}
}
