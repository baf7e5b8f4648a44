// Printing of inotify events, in the order in which they come.
#ifndef INOTIFY_H
#define INOTIFY_H

#include "conformance.h"

#include <sys/inotify.h>

static int inotify_fd;
static const char *watch_names[64];

static inline void print_events(const char *what, const char *b, ssize_t n)
{
	static const char *const names[] = {"ACCESS", "MODIFY", "ATTRIB", "CLOSE_WRITE", "CLOSE_NOWRITE", "OPEN", "MOVED_FROM",
		"MOVED_TO", "CREATE", "DELETE", "DELETE_SELF", "MOVE_SELF"};
	uint32_t cookies[16], ncookies = 0;
	printf("%s:", what);
	for (const char *p = b; p < b + n;) {
		const struct inotify_event *e = (const void *)p;
		printf(" [%s", e->wd > 0 && e->wd < 64 && watch_names[e->wd] ? watch_names[e->wd] : e->wd == -1 ? "-1" : "?");
		for (int i = 0; i < LEN(names); i++)
			if (e->mask & 1u << i)
				printf(" %s", names[i]);
		printf("%s%s%s", e->mask & IN_IGNORED ? " IGNORED" : "", e->mask & IN_Q_OVERFLOW ? " OVERFLOW" : "",
		       e->mask & IN_ISDIR ? " DIR" : "");
		if (e->len) {
			CHECK(e->len % sizeof *e == 0 && strlen(e->name) < e->len);
			printf(" %s", e->name[0] == '#' ? "#" : e->name);
		}
		if (e->cookie) {
			uint32_t i = 0;
			while (i < ncookies && cookies[i] != e->cookie)
				i++;
			CHECK(i < 16);
			cookies[i] = e->cookie;
			ncookies = i == ncookies ? i + 1 : ncookies;
			printf(" cookie %u", i);
		}
		printf("]");
		p += sizeof *e + e->len;
	}
	printf("\n");
}

// events prints all events that wait.
static inline void events(const char *what)
{
	char b[16384] __attribute__((aligned(8)));
	ssize_t n = read(inotify_fd, b, sizeof b);
	CHECK(n > 0 || errno == EAGAIN);
	print_events(what, b, n > 0 ? n : 0);
}

static inline int watch(const char *path, uint32_t mask, const char *name)
{
	int wd = inotify_add_watch(inotify_fd, path, mask);
	if (wd < 0)
		printf("watch %s: %s\n", name, errname(errno));
	else if (wd < 64)
		watch_names[wd] = name;
	return wd;
}

static inline void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0644);
	CHECK(fd >= 0 && close(fd) == 0);
}

#endif
