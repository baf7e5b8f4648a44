// /proc/net/tcp, tcp6, udp and unix: the lines of a program's own sockets, found by the inodes in /proc/self/fd.
#include "inet.h"

#include <sys/un.h>
#include <unistd.h>

static unsigned long inode_of(int fd)
{
	char path[64], to[64] = "";
	unsigned long inode = 0;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	CHECK(readlink(path, to, sizeof to - 1) > 0 && sscanf(to, "socket:[%lu]", &inode) == 1);
	return inode;
}

// endpoint is the address and port that a line of an AF_INET socket should have.
static const char *endpoint(int fd, int peer)
{
	static char text[2][64];
	struct sockaddr_in a = {0};
	socklen_t n = sizeof a;
	CHECK((peer ? getpeername : getsockname)(fd, (struct sockaddr *)&a, &n) == 0 || (peer && errno == ENOTCONN));
	snprintf(text[peer], sizeof text[peer], "%08X:%04X", a.sin_addr.s_addr, ntohs(a.sin_port));
	return text[peer];
}

// show prints the state, the bytes to be read, the user and the length of the line of a socket; a header, which begins
// with no number, has its length alone.
static void show(const char *file, const char *name, int fd)
{
	char path[64], line[512], local[64], remote[64];
	unsigned long inode = inode_of(fd), at;
	unsigned state, sending, receiving, uid;
	int found = 0, number;
	snprintf(path, sizeof path, "/proc/net/%s", file);
	FILE *f = fopen(path, "r");
	CHECK(f && fgets(line, sizeof line, f));
	int header = (int)strlen(line);
	while (fgets(line, sizeof line, f)) {
		CHECK(sscanf(line, "%d: %63s %63s %x %x:%x %*x:%*x %*x %u %*d %lu", &number, local, remote, &state, &sending, &receiving, &uid, &at) == 8);
		if (at != inode) continue;
		found++;
		printf("%s %s: state %02X, %u to be read, user %s, header %d, line %d\n", file, name, state, receiving, uid == getuid() ? "right" : "wrong", header,
			file[3] == '6' ? 0 : (int)strlen(line));
		if (file[3] != '6') CHECK(strcmp(local, endpoint(fd, 0)) == 0 && strcmp(remote, endpoint(fd, 1)) == 0);
	}
	CHECK(fclose(f) == 0);
	if (found != 1) printf("%s %s: %d lines\n", file, name, found);
}

static void show_unix(const char *name, int fd)
{
	char line[512], path[256];
	unsigned long inode = inode_of(fd), at;
	unsigned references, protocol, flags, type, state;
	int found = 0;
	FILE *f = fopen("/proc/net/unix", "r");
	CHECK(f && fgets(line, sizeof line, f));
	while (fgets(line, sizeof line, f)) {
		path[0] = 0;
		CHECK(sscanf(line, "%*x: %x %x %x %x %x %lu %255[^\n]", &references, &protocol, &flags, &type, &state, &at, path) >= 6);
		if (at != inode) continue;
		found++;
		printf("unix %s: %u references, protocol %u, flags %x, type %u, state %u, path %s\n", name, references, protocol, flags, type, state, path);
	}
	CHECK(fclose(f) == 0);
	if (found != 1) printf("unix %s: %d lines\n", name, found);
}

int main(void)
{
	int l = listener(), c = tcp(), other = tcp();
	show("tcp", "listener", l);
	CHECK(connect_to(c, port_of(l)) == 0);
	show("tcp", "listener with a connection", l);
	int s = accept(l, 0, 0);
	CHECK(s >= 0 && send(c, "seven", 5, 0) == 5);
	show("tcp", "client", c);
	show("tcp", "server", s);
	CHECK(bind_to(other, 0) == 0);
	show("tcp", "bound", other);

	int u = socket(AF_INET, SOCK_DGRAM, 0), v = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(u >= 0 && v >= 0 && bind_to(u, 0) == 0 && connect_to(v, port_of(u)) == 0);
	show("udp", "bound", u);
	show("udp", "connected", v);

	int pair[2];
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	show_unix("pair", pair[0]);
	int d = socket(AF_UNIX, SOCK_DGRAM, 0), n = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "\0proc_net"};
	CHECK(bind(n, (struct sockaddr *)&a, sizeof(sa_family_t) + 9) == 0 && listen(n, 5) == 0);
	show_unix("without a name", d);
	show_unix("abstract", n);
	unlink("proc_net.socket");
	strcpy(a.sun_path, "proc_net.socket");
	CHECK(bind(d, (struct sockaddr *)&a, sizeof a) == 0);
	show_unix("with a path", d);
	unlink("proc_net.socket");
	return 0;
}
