#include <fcntl.h>

int heddle_closed_stdfds(void);

static int closed;

/* The C library calls it before main, which starts Go's runtime. */
__attribute__((constructor)) static void find_closed(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			closed |= 1 << fd;
}

int heddle_closed_stdfds(void)
{
	return closed;
}
