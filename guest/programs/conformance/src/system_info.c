// uname, sysinfo, sysconf, getpagesize, hostname: consistent with each other, plausible, and those of Linux on x86-64.
#include "conformance.h"

#include <sys/auxv.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

int main(void)
{
	struct utsname u;
	struct sysinfo s;
	char host[256], buf[300];
	SHOW(uname(&u));
	printf("%s %s\n", u.sysname, u.machine);
	int major, minor;
	CHECK(sscanf(u.release, "%d.%d", &major, &minor) == 2 && major >= 3);
	CHECK(u.version[0] == '#');
	CHECK(gethostname(host, sizeof host) == 0 && strcmp(host, u.nodename) == 0);
	CHECK(getdomainname(buf, sizeof buf) == 0 && strcmp(buf, u.domainname) == 0);
	SHOW(gethostname(host, 0));
	CHECK(read_file("/proc/sys/kernel/ostype", buf, sizeof buf) > 0);
	printf("%s", buf);
	CHECK(read_file("/proc/sys/kernel/osrelease", buf, sizeof buf) > 0);
	buf[strcspn(buf, "\n")] = 0;
	printf("same release: %d\n", strcmp(buf, u.release) == 0);

	SHOW(sysinfo(&s));
	CHECK(s.mem_unit > 0 && s.totalram > 0 && s.freeram <= s.totalram && s.uptime >= 0 && s.procs >= 1);
	long pages = sysconf(_SC_PHYS_PAGES), avail = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	CHECK(pages > 0 && avail > 0 && avail <= pages);
	CHECK((uint64_t)pages * page <= (uint64_t)s.totalram * s.mem_unit);
	printf("page %ld %d\n", page, getpagesize());
	printf("clock ticks %ld\n", sysconf(_SC_CLK_TCK));
	long online = sysconf(_SC_NPROCESSORS_ONLN), conf = sysconf(_SC_NPROCESSORS_CONF);
	CHECK(online >= 1 && conf >= online && online == get_nprocs());
	cpu_set_t set;
	CHECK(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) <= conf);
	CHECK(sched_getcpu() >= 0 && sched_getcpu() < conf);
	printf("threads %ld, semaphores %ld, version %ld\n", sysconf(_SC_THREADS), sysconf(_SC_SEMAPHORES), sysconf(_SC_VERSION));
	printf("IOV_MAX %ld, LOGIN_NAME_MAX %ld, HOST_NAME_MAX %ld\n", sysconf(_SC_IOV_MAX), sysconf(_SC_LOGIN_NAME_MAX),
	       sysconf(_SC_HOST_NAME_MAX));
	CHECK(sysconf(_SC_ARG_MAX) >= 131072);
	SHOW(sysconf(9999));

	printf("auxv: page %lu, ticks %lu, secure %lu, platform %s\n", getauxval(AT_PAGESZ), getauxval(AT_CLKTCK),
	       getauxval(AT_SECURE), (char *)getauxval(AT_PLATFORM));
	CHECK(getauxval(AT_UID) == getuid() && getauxval(AT_EUID) == geteuid() && getauxval(AT_GID) == getgid());
	CHECK(getauxval(AT_RANDOM) != 0 && getauxval(AT_PHDR) != 0 && getauxval(AT_ENTRY) != 0);
	CHECK(getauxval(AT_PHENT) == 56 && getauxval(AT_PHNUM) > 0);
	CHECK(access((char *)getauxval(AT_EXECFN), X_OK) == 0);
	printf("%ld %s\n", (long)getauxval(9999), errname(errno));
	return 0;
}
