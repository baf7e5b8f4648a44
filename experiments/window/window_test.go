package window_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/window"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder"
)

// apache starts apache2 with 8 worker threads and a page of 100 KB, and asks for it 16 times, 8 at a time.
const apache = `mkdir /tmp/web; head -c 100000 /dev/zero > /tmp/web/page
	for l in 'ServerRoot /tmp' 'ServerName localhost' 'Listen 127.0.0.1:8080' 'User www-data' 'Group www-data' 'PidFile /tmp/pid' \
		'ErrorLog /tmp/log' 'LoadModule mpm_worker_module /usr/lib/apache2/modules/mod_mpm_worker.so' \
		'LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so' 'DocumentRoot /tmp/web' \
		'ServerLimit 1' 'StartServers 1' 'ThreadsPerChild 8' 'MaxRequestWorkers 8' 'MinSpareThreads 1' 'MaxSpareThreads 8'; do echo "$l"; done > /tmp/conf
	apache2 -f /tmp/conf -DFOREGROUND & s=$!
	until curl -s -o /dev/null http://127.0.0.1:8080/page; do sleep 0.1; done
	ab -q -n 24 -c 8 http://127.0.0.1:8080/page; kill -WINCH $s; wait $s`

// record records a window of a server's run.
func record(t *testing.T, script string, s recorder.Stretch) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Stdout, c.Stderr = []string{"sh", "-c", script}, os.TempDir(), io.Discard, io.Discard
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	c.Record = &machine.Record{To: f, Inputs: true, Sync: &machine.SyncRecord{Heap: true}, Stretch: s}
	r, err := machine.Run(context.Background(), c)
	if err != nil || r.Stretch.Why != "" {
		t.Fatalf("%v, %+v", err, r)
	}
	return f.Name()
}

// small is a server, and its client. The first byte of a request says whether handle locks, the second is data, and the
// third is examined in serve, which the server entered before any request. The variable mode is state.
const small = `
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
volatile int total, mode = 3;
__attribute__((noinline)) void handle(volatile char *b) {
	if (b[1] == 'x') total++;
	if (b[0] == 'L' && mode == 3) { pthread_mutex_lock(&mu); total += 2; pthread_mutex_unlock(&mu); }
}
__attribute__((noinline)) void serve(int c) {
	char b[4];
	while (read(c, b, 4) == 4) {
		if (b[2] != 'n') handle(b);
		write(c, b, 1);
	}
}
int main(void) {
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(7000), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM, 0);
	char b;
	bind(s, (void *)&a, sizeof a);
	listen(s, 5);
	if (fork() == 0) {
		int c = socket(AF_INET, SOCK_STREAM, 0);
		connect(c, (void *)&a, sizeof a);
		for (int i = 0; i < 6; i++) { write(c, i % 2 ? "Lx--" : "-y--", 4); read(c, &b, 1); }
		_exit(0);
	}
	serve(accept(s, 0, 0));
	wait(0);
	return 0;
}`

// TestWindow: what decides whether an operation happens is kept, also in a function that was entered before the window, and
// data of the last request are not: those of the first might be in memory that serve reads, of whose pointers nothing is
// known.
func TestWindow(t *testing.T) {
	bin := gcctest.C(t, small)
	at := func(n uint64) recorder.Place { return recorder.Place{Kind: recorder.AtRequest, Port: 7000, N: n} }
	path := record(t, "exec "+bin, recorder.Stretch{From: at(3), To: at(5)})
	r, err := window.Make(context.Background(), path, window.Options{Terms: true, State: []string{"mode"}})
	if err != nil {
		t.Fatal(err)
	}
	terms := strings.Join(r.Terms, "\n")
	for part, want := range map[string]bool{"[0]": true, "1000.2[1]": false, "[2]": true, "state(mode)": true} {
		if got := strings.Contains(strings.ReplaceAll(terms, "state(mode)[", "state(mode)("), part); got != want {
			t.Errorf("%s is kept: %v, want %v:\n%s", part, got, want, terms)
		}
	}
	if r.Inputs != 2*4+4 || r.Operations == 0 || r.Kept["lower"] > r.Kept["simplified"] || r.Kept["simplified"] > r.Branches {
		t.Errorf("%+v", *r)
	}
	if _, err := window.Make(context.Background(), path, window.Options{State: []string{"nothing"}}); err == nil {
		t.Error("a variable that there is not has no error")
	}
}

// TestWindowOfApache: PEREGRINE's window of 8 requests (section 7.3: 449,000 instructions, 4,522 branches, of which
// 624 are kept, 56 at least) is sliced in less than 5 s (885 s).
func TestWindowOfApache(t *testing.T) {
	if _, err := exec.LookPath("apache2"); err != nil || !testsize.Long() {
		t.Skip("apache2 is not installed, or HEDDLE_LONG is not set")
	}
	path := record(t, apache, recorder.Stretch{
		From: recorder.Place{Kind: recorder.AtRequest, Port: 8080, N: 10}, To: recorder.Place{Kind: recorder.AtRequest, Port: 8080, N: 18},
	})
	r, err := window.Make(context.Background(), path, window.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", *r)
	if !strings.HasSuffix(r.Program, "apache2") || r.Inputs == 0 || r.Branches == 0 {
		t.Errorf("%+v", *r)
	}
}

// TestWindowOfALibrary: code of a shared library is sliced as that of the program: of what handle examines there, only what
// decides whether it locks is kept.
func TestWindowOfALibrary(t *testing.T) {
	begin, end := strings.Index(small, "static pthread_mutex_t"), strings.Index(small, "__attribute__((noinline)) void serve")
	head := small[:begin]
	library := gcctest.C(t, head+strings.Replace(small[begin:end], "static ", "", 1), "-shared", "-fPIC")
	bin := gcctest.C(t, head+"void handle(volatile char *); extern volatile int mode;"+small[end:], library, "-Wl,-z,now")
	at := func(n uint64) recorder.Place { return recorder.Place{Kind: recorder.AtRequest, Port: 7000, N: n} }
	path := record(t, "exec "+bin, recorder.Stretch{From: at(3), To: at(5)})
	r, err := window.Make(context.Background(), path, window.Options{Terms: true})
	if err != nil {
		t.Fatal(err)
	}
	terms := strings.Join(r.Terms, "\n")
	for part, want := range map[string]bool{"[0]": true, "1000.2[1]": false, "[2]": true} {
		if got := strings.Contains(terms, part); got != want {
			t.Errorf("%s is kept: %v, want %v:\n%s", part, got, want, terms)
		}
	}
}
