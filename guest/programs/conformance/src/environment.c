// The environment: getenv, setenv, putenv, unsetenv, clearenv, the environment of a child after exec; auxv strings.
#include "conformance.h"

#include <sys/auxv.h>

extern char **environ;

static int count(void)
{
	int n = 0;
	while (environ && environ[n])
		n++;
	return n;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		printf("%s: %d variables", argv[1], count());
		for (int i = 0; i < count(); i++)
			printf(" [%.20s]", environ[i]);
		printf("\n");
		return 0;
	}
	CHECK(clearenv() == 0);
	printf("empty %d\n", count());
	SHOW(setenv("A", "1", 0));
	SHOW(setenv("A", "2", 0));
	printf("%s\n", getenv("A"));
	SHOW(setenv("A", "3", 1));
	printf("%s\n", getenv("A"));
	SHOW(setenv("B", "", 1));
	printf("[%s]\n", getenv("B"));
	SHOW(setenv("", "x", 1));
	SHOW(setenv("C=D", "x", 1));
	static char own[] = "OWN=before";
	SHOW(putenv(own));
	strcpy(own + 4, "after");
	printf("%s\n", getenv("OWN"));
	SHOW(unsetenv("B"));
	SHOW(unsetenv("B"));
	SHOW(unsetenv("X=Y"));
	printf("gone %d, secure %s\n", getenv("B") == NULL, secure_getenv("A"));
	char big[10000];
	memset(big, 'b', sizeof big - 1);
	big[sizeof big - 1] = 0;
	SHOW(setenv("BIG", big, 1));
	for (int i = 0; i < 200; i++) {
		char name[20];
		snprintf(name, sizeof name, "N%d", i);
		CHECK(setenv(name, name, 1) == 0);
	}
	for (int i = 0; i < 200; i++) {
		char name[20];
		snprintf(name, sizeof name, "N%d", i);
		CHECK(strcmp(getenv(name), name) == 0 && unsetenv(name) == 0);
	}
	printf("count %d\n", count());
	fflush(stdout);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execl("/proc/self/exe", "env", "inherited", NULL);
		_exit(1);
	}
	CHECK(wait_for(pid) == 0);
	environ = NULL;
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execl("/proc/self/exe", "env", "nothing", NULL);
		_exit(1);
	}
	CHECK(wait_for(pid) == 0);
	printf("%d\n", getenv("A") == NULL);
	return 0;
}
