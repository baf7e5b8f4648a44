// User and group ids, supplementary groups, setting them to their present values; prctl settings open to unprivileged users.
#include "conformance.h"

#include <grp.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

int main(void)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;
	CHECK(getresuid(&r, &e, &s) == 0 && getresgid(&rg, &eg, &sg) == 0);
	printf("uids agree %d, gids agree %d\n", r == getuid() && e == geteuid() && r == s, rg == getgid() && eg == getegid() && rg == sg);
	int n = getgroups(0, NULL);
	CHECK(n >= 0);
	gid_t *list = calloc(n + 1, sizeof *list);
	SHOW(getgroups(n, list) == n);
	SHOW(setuid(getuid()));
	SHOW(setgid(getgid()));
	SHOW(seteuid(geteuid()));
	SHOW(setresuid(-1, -1, -1));
	SHOW(setresgid(rg, eg, sg));
	SHOW(setreuid(-1, -1));
	CHECK(setfsuid(-1) == (int)e);

	int v = -1;
	SHOW(prctl(PR_GET_DUMPABLE));
	SHOW(prctl(PR_SET_DUMPABLE, 0));
	SHOW(prctl(PR_GET_DUMPABLE));
	SHOW(prctl(PR_SET_DUMPABLE, 77));
	SHOW(prctl(PR_SET_DUMPABLE, 1));
	SHOW(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	SHOW(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
	SHOW(prctl(PR_GET_KEEPCAPS));
	SHOW(prctl(PR_GET_PDEATHSIG, &v));
	printf("%d\n", v);
	SHOW(prctl(PR_SET_TIMERSLACK, 1000));
	SHOW(prctl(PR_GET_TIMERSLACK));
	SHOW(prctl(99999));
	free(list);
	return 0;
}
