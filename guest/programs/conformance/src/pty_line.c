// The line discipline of a terminal: lines, editing, echo, characters that are changed or special.
#include "terminal.h"

#define USUAL (ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN)

static void mode(const char *what, tcflag_t iflag, tcflag_t lflag)
{
	printf("-- %s\n", what);
	set_flags(iflag, OPOST | ONLCR, lflag);
}

static void lines(void)
{
	mode("usual", ICRNL | IXON, USUAL);
	TYPE("one\n");
	TYPE("two\rthree\r");
	TYPE("part");
	TYPE("ial\n");
	TYPE("\n\n");
	TYPE("a\004");
	TYPE("\004");
	TYPE("x\ny\004z\n");
	TYPE("control \001\002\033 bytes\n");
	TYPE("tab\there\n");
	TYPE("\xc3\xa4 umlaut \xff\n");
	TYPE("literal \026\003\026\004\026\026\026\n end\n");
	TYPE("\022reprint\022 this\n");
}

static void erasing(void)
{
	mode("erasing", ICRNL, USUAL);
	TYPE("abc\177d\n");
	TYPE("\177\177x\n");
	TYPE("ctrl\001\177\177x\n");
	TYPE("a\tb\177\177c\n");
	TYPE("1234567\t\177x\n");
	TYPE("12345678\t\177x\n");
	TYPE("a\t\t\177\177b\n");
	TYPE("word one two\027x\n");
	TYPE("word one two  \027\027x\n");
	TYPE("some_word9.end\027x\n");
	TYPE("(paren)\027x\n");
	TYPE("all of this\025new\n");
	TYPE("\025\n");
	TYPE("line\004\177\177more\n");
	TYPE("\xc3\xa4\xc3\xb6\177x\n");
	mode("erasing UTF-8", ICRNL | IUTF8, USUAL);
	TYPE("\xc3\xa4\xc3\xb6\177x\n");
	TYPE("\xe2\x82\xac\177\177x\n");
	TYPE("a\xe2\x82\xac\tb\177\177c\n");
	TYPE("w\xc3\xb6rd two\027\027x\n");
	TYPE("\x82\x82\177x\n");
	mode("no ECHOE", ICRNL, USUAL & ~ECHOE);
	TYPE("abc\177d\n");
	TYPE("abc\025d\n");
	mode("no ECHOKE", ICRNL, USUAL & ~ECHOKE);
	TYPE("abc\025d\n");
	mode("no ECHOK", ICRNL, USUAL & ~(ECHOK | ECHOKE));
	TYPE("abc\025d\n");
	mode("ECHOPRT", ICRNL, USUAL | ECHOPRT);
	TYPE("abc\177\177d\n");
	TYPE("abc\177\177\177\177d\n");
	TYPE("one two\027\025x\n");
	TYPE("ab\177\026\003\n");
	mode("ECHOPRT with UTF-8", ICRNL | IUTF8, USUAL | ECHOPRT);
	TYPE("a\xe2\x82\xac\177b\n");
	mode("no ECHO", ICRNL, USUAL & ~ECHO);
	TYPE("abc\177d\027\025ef\n");
	mode("ECHONL", ICRNL, (USUAL & ~ECHO) | ECHONL);
	TYPE("secret\177\n");
	mode("no ECHOCTL", ICRNL, USUAL & ~ECHOCTL);
	TYPE("a\001\033b\177\177c\n");
	TYPE("a\001\tb\177\177c\026\003\n");
	mode("no IEXTEN", ICRNL, USUAL & ~IEXTEN);
	TYPE("a b\027c\026d\022e\n");
}

static void changed(void)
{
	mode("INLCR", INLCR, USUAL);
	TYPE("a\nb\r\004");
	mode("IGNCR", IGNCR | ICRNL, USUAL);
	TYPE("a\r\nb\rc\n");
	mode("nothing", 0, USUAL);
	TYPE("a\rb\n");
	mode("ISTRIP", ISTRIP, USUAL);
	TYPE("\xe1\xe2\x8a");
	mode("IUCLC", IUCLC, USUAL);
	TYPE("ABC xyz\026D\n");
	mode("IUCLC without IEXTEN", IUCLC, USUAL & ~IEXTEN);
	TYPE("ABC xyz\n");
	mode("PARMRK", PARMRK, USUAL);
	TYPE("a\xff\xff" "b\n");
	printf("-- other characters\n");
	struct termios t = get_termios(slave_fd), old = t;
	t.c_iflag = ICRNL;
	t.c_cc[VERASE] = '#';
	t.c_cc[VKILL] = '@';
	t.c_cc[VEOL] = ';';
	t.c_cc[VEOL2] = ',';
	t.c_cc[VEOF] = 'E';
	t.c_cc[VWERASE] = _POSIX_VDISABLE;
	CHECK(tcsetattr(slave_fd, TCSANOW, &t) == 0);
	TYPE("ab#c;d,eE");
	TYPE("abc@d\027\n");
	TYPE("E");
	t.c_cc[VEOL2] = '\xff';
	t.c_iflag |= PARMRK;
	CHECK(tcsetattr(slave_fd, TCSANOW, &t) == 0);
	TYPE("x\xff");
	t.c_cc[VINTR] = t.c_cc[VQUIT] = 'Q';
	CHECK(tcsetattr(slave_fd, TCSANOW, &t) == 0);
	TYPE("lost Q kept\n");
	CHECK(tcsetattr(slave_fd, TCSANOW, &old) == 0);
}

// signals of keys drop input and output, even without a process that gets them.
static void keys(void)
{
	mode("keys", ICRNL | IXON, USUAL);
	TYPE("dropped\003kept\n");
	TYPE("dropped\034kept\n");
	TYPE("dropped\032kept\n");
	mode("NOFLSH", ICRNL | IXON, USUAL | NOFLSH);
	TYPE("kept\003 too\n");
	mode("no ISIG", ICRNL | IXON, USUAL & ~ISIG);
	TYPE("a\003\034\032b\n");
}

static void flow(void)
{
	mode("flow", ICRNL | IXON, USUAL);
	TYPE("a\023b\n");
	SHOW(write(slave_fd, "held", 4));
	TYPE("c\n");
	TYPE("\021d\n");
	mode("IXANY", ICRNL | IXON | IXANY, USUAL);
	TYPE("a\023");
	TYPE("b\n");
	TYPE("\023");
	mode("no IXON any more", ICRNL, USUAL);
	TYPE("c\n");
	TYPE("\021\023\n");
	SHOW(tcflow(slave_fd, TCOOFF));
	SHOW(write(slave_fd, "held", 4));
	TYPE("x\n");
	SHOW(tcflow(slave_fd, TCOON));
	TYPE("\n");
	SHOW(tcflow(slave_fd, TCIOFF));
	SHOW(tcflow(slave_fd, TCION));
	drain_master();
	SHOW(tcflow(slave_fd, 99));
}

static void sizes(void)
{
	char big[9000], b[9000];
	mode("long lines", ICRNL, USUAL & ~ECHO);
	for (int i = 0; i < LEN(big); i++)
		big[i] = 'a' + i % 26;
	for (int n = 4094; n <= 4097; n++) {
		CHECK(write(master_fd, big, n) == n && write(master_fd, "\n", 1) == 1);
		ssize_t r;
		while ((r = read(slave_fd, b, sizeof b)) == -1 && errno == EAGAIN)
			;
		printf("%d bytes and a newline: read %zd, ends ", n, r);
		quote(b + r - 4, 4);
		printf("\n");
	}
	// An erased line that was too long.
	CHECK(write(master_fd, big, 5000) == 5000 && write(master_fd, "\177\177Z\n", 4) == 4);
	ssize_t r;
	while ((r = read(slave_fd, b, sizeof b)) == -1 && errno == EAGAIN)
		;
	printf("erased: read %zd, ends ", r);
	quote(b + r - 4, 4);
	printf("\n");
	// Reads in pieces.
	mode("pieces", ICRNL, USUAL & ~ECHO);
	put_bytes(master_fd, "0123456789\nnext\n", 16);
	for (int i = 0; i < 5; i++) {
		while ((r = read(slave_fd, b, 4)) == -1 && errno == EAGAIN && i < 3)
			;
		quote(b, r);
		printf("\n");
	}
	put_bytes(master_fd, "abc\004defg\004\004", 10);
	int waiting = 0;
	while (waiting < 7)
		CHECK(ioctl(slave_fd, FIONREAD, &waiting) == 0);
	printf("%d bytes wait\n", waiting);
	for (int i = 0; i < 4; i++) {
		r = read(slave_fd, b, 3);
		printf("read %zd\n", r);
	}
	SHOW(read(slave_fd, b, 3));
	SHOW(read(slave_fd, b, 0));
}

// modes changes between canonical and raw mode while input waits.
static void modes(void)
{
	int n;
	mode("from bytes to lines", 0, 0);
	put_bytes(master_fd, "abc\ndef", 7);
	do
		CHECK(ioctl(slave_fd, FIONREAD, &n) == 0);
	while (n < 7);
	mode("lines", 0, ICANON);
	CHECK(ioctl(slave_fd, FIONREAD, &n) == 0);
	printf("%d bytes wait\n", n);
	drain_slave(0);
	printf("\n-- from lines to bytes\n");
	put_bytes(master_fd, "abc\ndef\004gh", 10);
	do
		CHECK(ioctl(slave_fd, FIONREAD, &n) == 0);
	while (n < 7);
	mode("bytes", 0, 0);
	drain_slave(1);
	printf("\n");
	mode("flushed", 0, ICANON);
	put_bytes(master_fd, "gone\n", 5);
	do
		CHECK(ioctl(slave_fd, FIONREAD, &n) == 0);
	while (n < 5);
	struct termios t = get_termios(slave_fd);
	SHOW(tcsetattr(slave_fd, TCSAFLUSH, &t));
	drain_slave(0);
	put_bytes(master_fd, "gone\n", 5);
	do
		CHECK(ioctl(slave_fd, FIONREAD, &n) == 0);
	while (n < 5);
	SHOW(tcflush(slave_fd, TCIFLUSH));
	drain_slave(0);
	printf("\n");
	SHOW(tcflush(slave_fd, TCIOFLUSH));
	SHOW(tcflush(slave_fd, 77));
}

int main(void)
{
	open_pair();
	lines();
	erasing();
	changed();
	keys();
	flow();
	sizes();
	modes();
	close_pair();
	return 0;
}
