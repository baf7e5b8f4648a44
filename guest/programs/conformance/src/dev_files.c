// /dev/null, zero, full, random and urandom, the descriptors in /dev/fd, and isatty of files that are no terminals.
#include "conformance.h"

#include <sys/random.h>
#include <sys/ioctl.h>
#include <termios.h>

static bool constant(const unsigned char *p, int n)
{
	for (int i = 1; i < n; i++)
		if (p[i] != p[0])
			return false;
	return true;
}

static char big[1 << 20];

int main(void)
{
	unsigned char buf[300], two[300];
	int null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR), full = open("/dev/full", O_RDWR);
	CHECK(null >= 0 && zero >= 0 && full >= 0);
	SHOW(read(null, buf, sizeof buf));
	SHOW(write(null, buf, sizeof buf));
	SHOW(lseek(null, 100, SEEK_SET));
	memset(buf, 1, sizeof buf);
	SHOW(read(zero, buf, sizeof buf));
	printf("all zero %d\n", buf[0] == 0 && constant(buf, sizeof buf));
	SHOW(write(zero, buf, sizeof buf));
	SHOW(read(zero, big, sizeof big));
	SHOW(read(full, big, sizeof big));
	SHOW(write(null, big, sizeof big));
	SHOW(write(full, buf, sizeof buf));
	SHOW(read(full, buf, sizeof buf));
	char *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
	CHECK(m != MAP_FAILED);
	m[5000] = 'z';
	printf("mapped zeroes %d %c\n", m[0], m[5000]);

	static const char *const source[] = {"/dev/random", "/dev/urandom"};
	for (int i = 0; i < LEN(source); i++) {
		int fd = open(source[i], O_RDONLY);
		CHECK(fd >= 0);
		SHOW(read(fd, buf, 200));
		SHOW(read(fd, two, 200));
		SHOW(read(fd, big, sizeof big));
		CHECK(!constant(buf, 200) && memcmp(buf, two, 200) != 0);
	}
	SHOW(getrandom(buf, sizeof buf, 0));
	SHOW(getrandom(two, sizeof two, GRND_NONBLOCK));
	CHECK(!constant(buf, 256) && memcmp(buf, two, 256) != 0);
	SHOW(getrandom(buf, 10, GRND_RANDOM));
	SHOW(getrandom(buf, 0, 0));
	SHOW(getrandom(buf, 10, 0x7000));
	SHOW(getentropy(buf, 256));
	SHOW(getentropy(buf, 257));

	struct termios t;
	struct winsize w;
	SHOW(isatty(null));
	printf("%s\n", errname(errno));
	SHOW(tcgetattr(null, &t));
	SHOW(ioctl(null, TIOCGWINSZ, &w));
	SHOW(ioctl(null, FIONREAD, &w));
	SHOW(isatty(999));
	printf("%s\n", errname(errno));

	write_file("file", "through /dev/fd");
	int fd = open("file", O_RDONLY);
	char path[40];
	snprintf(path, sizeof path, "/dev/fd/%d", fd);
	int again = open(path, O_RDONLY);
	CHECK(again >= 0 && read(again, buf, 15) == 15);
	printf("%.15s\n", buf);
	SHOW(open("/dev/no-such-device", O_RDONLY));
	return 0;
}
