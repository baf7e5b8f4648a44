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
