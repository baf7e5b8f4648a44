// Pseudo-terminals as pairs: names, locks, ends that are closed, hang-ups, settings, requests.
// link: -lutil
#include "terminal.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

static void names(void)
{
	int m = posix_openpt(O_RDWR | O_NOCTTY), n = -1, value = 7;
	CHECK(m >= 0);
	char name[64];
	CHECK(ptsname_r(m, name, sizeof name) == 0);
	CHECK(ioctl(m, TIOCGPTN, &n) == 0);
	char want[64];
	snprintf(want, sizeof want, "/dev/pts/%d", n);
	printf("name agrees: %d\n", strcmp(name, want) == 0);
	SHOW(ioctl(m, TIOCGPTLCK, &value));
	printf("locked %d\n", value);
	SHOW(open(name, O_RDWR | O_NOCTTY));
	SHOW(unlockpt(m));
	SHOW(ioctl(m, TIOCGPTLCK, &value));
	printf("locked %d\n", value);
	int s = open(name, O_RDWR | O_NOCTTY);
	SHOW(s >= 0);
	struct stat st;
	CHECK(fstat(s, &st) == 0);
	printf("device %d:%d, number agrees %d, inode agrees %d, character device %d, mine %d\n", major(st.st_rdev), minor(st.st_rdev) == (unsigned)n,
	       (int)st.st_nlink, st.st_ino == (ino_t)n + 3, S_ISCHR(st.st_mode), st.st_uid == getuid());
	SHOW(isatty(s));
	SHOW(isatty(m));
	printf("name %d\n", strcmp(ttyname(s), name) == 0);
	SHOW(ptsname_r(s, name, sizeof name));
	SHOW(ioctl(s, TIOCGPTN, &n));
	SHOW(ioctl(m, TIOCSPTLCK, &(int){1}));
	SHOW(open(name, O_RDWR | O_NOCTTY));
	int peer = ioctl(m, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	SHOW(peer);
	SHOW(unlockpt(m));
	peer = ioctl(m, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	SHOW(peer >= 0);
	SHOW(fcntl(peer, F_GETFD));
	SHOW(ioctl(s, TIOCGPTPEER, O_RDWR));
	CHECK(fstat(peer, &st) == 0 && minor(st.st_rdev) == (unsigned)n);
	CHECK(close(peer) == 0 && close(s) == 0 && close(m) == 0);
	SHOW(open(name, O_RDWR | O_NOCTTY));
	SHOW(stat(name, &st));
	SHOW(open("/dev/pts/ptmx/x", O_RDWR));
	SHOW(mkdir("/dev/pts/x", 0700));
	SHOW(unlink("/dev/pts/ptmx"));
}

static void show_termios(const char *what, int fd)
{
	struct termios t = get_termios(fd);
	printf("%s: %o %o %o %o, line %d, speeds %d %d, characters", what, t.c_iflag, t.c_oflag, t.c_cflag, t.c_lflag, t.c_line,
	       cfgetispeed(&t) == B38400, cfgetospeed(&t) == B38400);
	for (int i = 0; i < 17; i++)
		printf(" %x", t.c_cc[i]);
	printf("\n");
}

static void settings(void)
{
	open_pair();
	show_termios("slave", slave_fd);
	show_termios("master", master_fd);
	struct termios t = get_termios(slave_fd);
	t.c_cflag = CS5 | PARENB | PARODD | CSTOPB | HUPCL | CLOCAL;
	cfsetspeed(&t, B9600);
	t.c_lflag &= ~ECHO;
	SHOW(tcsetattr(master_fd, TCSADRAIN, &t));
	show_termios("changed", slave_fd);
	t = get_termios(slave_fd);
	printf("speed %d\n", cfgetospeed(&t) == B9600);
	struct winsize w = {24, 80, 1, 2}, r = {0};
	SHOW(ioctl(slave_fd, TIOCSWINSZ, &w));
	SHOW(ioctl(master_fd, TIOCGWINSZ, &r));
	printf("window %d %d %d %d\n", r.ws_row, r.ws_col, r.ws_xpixel, r.ws_ypixel);
	SHOW(ioctl(slave_fd, TIOCGWINSZ, 8));
	SHOW(ioctl(slave_fd, TCGETS, 8));
	SHOW(ioctl(slave_fd, TCSETS, 8));
	int v = 5;
	SHOW(ioctl(slave_fd, TIOCOUTQ, &v));
	printf("%d\n", v);
	SHOW(ioctl(slave_fd, TIOCGETD, &v));
	printf("%d\n", v);
	SHOW(ioctl(slave_fd, TIOCSETD, &v));
	SHOW(ioctl(slave_fd, TIOCMGET, &v));
	SHOW(ioctl(slave_fd, TIOCGPGRP, &v));
	SHOW(ioctl(master_fd, TIOCGPGRP, &v));
	SHOW(ioctl(slave_fd, TIOCGSID, &v));
	SHOW(ioctl(master_fd, TIOCGSID, &v));
	SHOW(ioctl(slave_fd, 0x54ff, &v));
	SHOW(tcdrain(slave_fd));
	SHOW(tcsendbreak(slave_fd, 0));
	SHOW(lseek(slave_fd, 0, SEEK_SET));
	SHOW(pread(slave_fd, &v, 1, 0));
	SHOW(read(slave_fd, NULL, 0));
	SHOW(write(slave_fd, NULL, 0));
	SHOW(ftruncate(slave_fd, 0));
	SHOW((long)mmap(NULL, 4096, PROT_READ, MAP_SHARED, slave_fd, 0));
	CHECK(ioctl(slave_fd, TIOCEXCL) == 0);
	SHOW(ioctl(slave_fd, TIOCGEXCL, &v));
	printf("exclusive %d\n", v);
	CHECK(ioctl(slave_fd, TIOCNXCL) == 0);
	// Settings are kept until both ends are closed.
	char name[64];
	CHECK(ptsname_r(master_fd, name, sizeof name) == 0 && close(slave_fd) == 0);
	slave_fd = open(name, O_RDWR | O_NOCTTY);
	t = get_termios(slave_fd);
	printf("still without echo: %d\n", !(t.c_lflag & ECHO));
	close_pair();
	open_pair();
	show_termios("a new pair", slave_fd);
	close_pair();
}

static void show_poll(const char *what, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT | POLLPRI};
	CHECK(poll(&p, 1, 0) >= 0);
	printf("%s: events %x\n", what, p.revents);
}

static void closed_slave(void)
{
	char b[100], name[64];
	int m = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	CHECK(m >= 0 && unlockpt(m) == 0 && ptsname_r(m, name, sizeof name) == 0);
	show_poll("never opened", m);
	SHOW(read(m, b, sizeof b));
	SHOW(write(m, "early\n", 6));
	int s = open(name, O_RDWR | O_NOCTTY | O_NONBLOCK);
	ssize_t n;
	while ((n = read(s, b, sizeof b)) == -1 && errno == EAGAIN)
		;
	printf("typed before: %zd\n", n);
	SHOW(write(s, "last words", 10));
	int second = open(name, O_RDWR | O_NOCTTY);
	CHECK(close(s) == 0);
	show_poll("one is open still", m);
	CHECK(close(second) == 0);
	CHECK(read(m, b, 7) == 7); // the echo
	show_poll("closed", m);
	n = read(m, b, sizeof b);
	printf("read %zd\n", n);
	SHOW(read(m, b, sizeof b));
	SHOW(read(m, b, sizeof b));
	show_poll("empty", m);
	SHOW(write(m, "x\n", 2));
	s = open(name, O_RDWR | O_NOCTTY | O_NONBLOCK);
	CHECK(s >= 0);
	CHECK(read(s, b, sizeof b) == 2);
	CHECK(read(m, b, sizeof b) == 3);
	show_poll("opened again", m);
	SHOW(read(m, b, sizeof b));
	CHECK(close(s) == 0 && close(m) == 0);
}

static void *blocked_reader(void *arg)
{
	char c;
	ssize_t n = read((int)(long)arg, &c, 1);
	return (void *)(n < 0 ? (long)-errno : n);
}

static void closed_master(void)
{
	open_pair();
	char b[10];
	struct termios t;
	CHECK(write(master_fd, "waits\n", 6) == 6);
	show_poll("input", slave_fd);
	CHECK(close(master_fd) == 0);
	show_poll("hung up", slave_fd);
	SHOW(read(slave_fd, b, sizeof b));
	SHOW(write(slave_fd, b, 1));
	SHOW(tcgetattr(slave_fd, &t));
	SHOW(tcsetpgrp(slave_fd, getpgrp()));
	SHOW(isatty(slave_fd));
	CHECK(close(slave_fd) == 0);
	// Waiting threads are woken.
	open_pair();
	CHECK(fcntl(slave_fd, F_SETFL, 0) == 0);
	pthread_t r = start(blocked_reader, (void *)(long)slave_fd);
	nap();
	CHECK(close(master_fd) == 0);
	long got = (long)finish(r);
	printf("a read that waited ended: %d\n", got == 0 || got == -EIO);
	CHECK(close(slave_fd) == 0);
	open_pair();
	CHECK(fcntl(master_fd, F_SETFL, 0) == 0);
	r = start(blocked_reader, (void *)(long)master_fd);
	nap();
	CHECK(close(slave_fd) == 0);
	printf("a read of the master: %s\n", errname(-(long)finish(r)));
	CHECK(close(master_fd) == 0);
}

static void packets(void)
{
	open_pair();
	int on = 1, v = 0;
	char b[100];
	SHOW(ioctl(slave_fd, TIOCPKT, &on));
	SHOW(ioctl(master_fd, TIOCPKT, &on));
	SHOW(ioctl(master_fd, TIOCGPKT, &v));
	printf("packets %d\n", v);
	CHECK(write(slave_fd, "data", 4) == 4);
	drain_master();
	SHOW(tcflush(slave_fd, TCIFLUSH));
	show_poll("flushed", master_fd);
	drain_master();
	SHOW(tcflush(slave_fd, TCOFLUSH));
	drain_master();
	SHOW(tcflow(slave_fd, TCOOFF));
	drain_master();
	SHOW(tcflow(slave_fd, TCOON));
	drain_master();
	struct termios t = get_termios(slave_fd);
	t.c_iflag &= ~IXON;
	CHECK(tcsetattr(slave_fd, TCSANOW, &t) == 0);
	drain_master();
	t.c_iflag |= IXON;
	CHECK(tcsetattr(slave_fd, TCSANOW, &t) == 0);
	drain_master();
	t.c_lflag |= EXTPROC;
	CHECK(tcsetattr(slave_fd, TCSANOW, &t) == 0);
	drain_master();
	CHECK(write(slave_fd, "more", 4) == 4);
	SHOW(read(master_fd, b, 3));
	printf("%d %c%c\n", b[0], b[1], b[2]);
	drain_master();
	on = 0;
	SHOW(ioctl(master_fd, TIOCPKT, &on));
	CHECK(write(slave_fd, "plain", 5) == 5);
	drain_master();
	close_pair();
}

static void helpers(void)
{
	int m, s;
	struct termios t;
	struct winsize w = {10, 20, 0, 0}, r;
	open_pair();
	t = get_termios(slave_fd);
	close_pair();
	t.c_lflag &= ~ECHO;
	CHECK(openpty(&m, &s, NULL, &t, &w) == 0);
	CHECK(ioctl(s, TIOCGWINSZ, &r) == 0);
	printf("openpty: %d %d, echo %d\n", r.ws_row, r.ws_col, (get_termios(s).c_lflag & ECHO) != 0);
	CHECK(close(m) == 0 && close(s) == 0);
	pid_t pid = forkpty(&m, NULL, NULL, &w);
	CHECK(pid >= 0);
	if (pid == 0) {
		char line[64];
		printf("session leader %d, group %d, terminal %d\n", getsid(0) == getpid(), tcgetpgrp(0) == getpid(), isatty(0) && isatty(1) && isatty(2));
		CHECK(fgets(line, sizeof line, stdin));
		printf("got %s", line);
		exit(5);
	}
	CHECK(write(m, "hello\n", 6) == 6);
	char all[1000];
	size_t n = 0;
	ssize_t k;
	while ((k = read(m, all + n, sizeof all - n)) > 0)
		n += k;
	printf("forkpty: %s, %s\n", errname(errno), status_text(wait_for(pid)));
	// The echo may be read before the first line or after it.
	all[n] = 0;
	printf("%d %d %d\n", strstr(all, "hello\r\n") != NULL, strstr(all, "session leader 1, group 1, terminal 1\r\n") != NULL,
	       strstr(all, "got hello\r\n") != NULL);
	CHECK(close(m) == 0);
}

int main(void)
{
	names();
	settings();
	closed_slave();
	closed_master();
	packets();
	helpers();
	return 0;
}
