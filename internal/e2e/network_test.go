package e2e

import (
	"testing"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

// network are Debian's programs that talk to each other over loopback and UNIX
// sockets. Natively the host chooses ports; each script prints nothing of them.
var network = []struct {
	name    string
	command []string
}{
	{"http", python(`
import http.server, threading, urllib.request
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ("hello " + self.path).encode() * 100
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
t = threading.Thread(target=s.serve_forever); t.start()
r = []
def get(i): r.append((i, len(urllib.request.urlopen("http://127.0.0.1:%d/%d" % (s.server_port, i)).read())))
ts = [threading.Thread(target=get, args=(i,)) for i in range(8)]
[x.start() for x in ts]; [x.join() for x in ts]
s.shutdown(); t.join(); print(sorted(r))`)},
	{"asyncio", python(`
import asyncio
async def main():
    async def echo(r, w):
        while d := await r.read(1 << 20):
            w.write(d); await w.drain()
        w.close()
    async def talk(r, w, data):
        async def send():
            w.write(data); await w.drain(); w.write_eof()
        t = asyncio.create_task(send())
        got = await r.read(-1)
        await t; w.close()
        return got == data
    s = await asyncio.start_server(echo, "localhost", 0)
    port = s.sockets[0].getsockname()[1]
    print(await asyncio.gather(*[talk(*await asyncio.open_connection("127.0.0.1", port), bytes(range(256)) * 1000 * i) for i in range(1, 5)]))
    u = await asyncio.start_unix_server(echo, "net.sock")
    print(await talk(*await asyncio.open_unix_connection("net.sock"), b"x" * 500000))
    loop = asyncio.get_running_loop()
    class Back(asyncio.DatagramProtocol):
        def connection_made(self, t): self.t = t
        def datagram_received(self, d, a): self.t.sendto(d[::-1], a)
    class Ask(asyncio.DatagramProtocol):
        def __init__(self, f): self.f = f
        def connection_made(self, t): t.sendto(b"hello")
        def datagram_received(self, d, a): self.f.set_result(d)
    t, _ = await loop.create_datagram_endpoint(Back, local_addr=("127.0.0.1", 0))
    f = loop.create_future()
    await loop.create_datagram_endpoint(lambda: Ask(f), remote_addr=t.get_extra_info("sockname"))
    print(await f)
    try: await asyncio.open_connection("127.0.0.1", 1)
    except OSError as e: print(e)
asyncio.run(main())
import os; os.unlink("net.sock")`)},
	{"multiprocessing-connection", python(`
from multiprocessing.connection import Client, Listener
import socket, threading
l = Listener(("localhost", 0), authkey=b"key")
def serve():
    c = l.accept(); c.send(c.recv() * 2); c.close()
t = threading.Thread(target=serve); t.start()
c = Client(l.address, authkey=b"key"); c.send([1, 2]); print(c.recv()); t.join()
a, b = socket.socketpair()
with open("words") as f:
    socket.send_fds(a, [b"x"], [f.fileno()])
_, fds, _, _ = socket.recv_fds(b, 10, 1)
print(len(open(fds[0]).read()))
print(socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM, family=socket.AF_INET), socket.if_nametoindex("lo"))`)},
}

// networkMachines are the machines on which they run, in turn.
var networkMachines = [][]string{{"--cores", "4"}, {"--cores", "2", "--sched", "random", "--seed", "3"}}

func TestNetworkPrograms(t *testing.T) {
	testsize.SkipQuick(t)
	dir := t.TempDir()
	realInputs(t, dir)
	for i, p := range network {
		t.Run(p.name, func(t *testing.T) {
			native := execute(t, dir, nil, p.command...)
			for _, flags := range testsize.Sample(networkMachines, 1, i) {
				if o := run(t, dir, flags, p.command...); o.stdout != native.stdout || o.status != native.status {
					t.Errorf("%v: got %v\nwant %v", flags, o, native)
				}
			}
		})
	}
}
