// posix_spawn: arguments, environment, file actions, attributes for signals and groups, errors; posix_spawnp.
#include "conformance.h"

#include <spawn.h>

extern char **environ;

static int child(int argc, char **argv)
{
	sigset_t mask;
	struct sigaction sa;
	printf("child:");
	for (int i = 1; i < argc; i++)
		printf(" %s", argv[i]);
	printf(", X=%s\n", getenv("X") ? getenv("X") : "none");
	CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && sigaction(SIGUSR1, NULL, &sa) == 0);
	printf("  USR2 blocked %d, USR1 %s, own group %d, own session %d, standard input %s\n", sigismember(&mask, SIGUSR2),
	       sa.sa_handler == SIG_IGN ? "ignored" : "default", getpgrp() == getpid(), getsid(0) == getpid(),
	       fcntl(0, F_GETFD) == -1 ? "closed" : "open");
	char buf[20] = {0};
	if (argc > 1 && strcmp(argv[1], "files") == 0) {
		CHECK(read(5, buf, 19) > 0);
		printf("  descriptor 5: %s\n", buf);
		CHECK(read_file("name", buf, sizeof buf) > 0);
		printf("  in its folder: %s\n", buf);
		fprintf(stderr, "to the log\n");
	}
	return 7;
}

static void run(const char *what, posix_spawn_file_actions_t *fa, posix_spawnattr_t *at, char **env, char *arg)
{
	char *argv[] = {"program", arg, "second", NULL};
	pid_t pid;
	int r = posix_spawn(&pid, "/proc/self/exe", fa, at, argv, env);
	if (r != 0)
		printf("%s: %s\n", what, errname(r));
	else
		printf("%s: %s\n", what, status_text(wait_for(pid)));
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return child(argc, argv);
	char *env[] = {"X=from the parent", NULL}, *none[] = {NULL}, *args[] = {"x", NULL};
	pid_t pid;
	CHECK(mkdir("folder", 0755) == 0);
	write_file("folder/name", "inside");
	write_file("five", "file five");
	run("plain", NULL, NULL, env, "one");
	run("no environment", NULL, NULL, none, "two");

	posix_spawn_file_actions_t fa;
	OK(posix_spawn_file_actions_init(&fa));
	OK(posix_spawn_file_actions_addclose(&fa, 0));
	OK(posix_spawn_file_actions_addopen(&fa, 9, "five", O_RDONLY, 0));
	OK(posix_spawn_file_actions_adddup2(&fa, 9, 5));
	OK(posix_spawn_file_actions_addclose(&fa, 9));
	OK(posix_spawn_file_actions_addopen(&fa, 2, "log", O_WRONLY | O_CREAT | O_TRUNC, 0600));
	OK(posix_spawn_file_actions_addchdir_np(&fa, "folder"));
	run("file actions", &fa, NULL, env, "files");
	OK(posix_spawn_file_actions_destroy(&fa));
	char buf[100];
	CHECK(read_file("log", buf, sizeof buf) > 0);
	printf("log: %s", buf);

	posix_spawnattr_t at;
	sigset_t s;
	on_signal(SIGUSR1, SIG_IGN, 0);
	run("ignored signal inherited", NULL, NULL, none, "three");
	OK(posix_spawnattr_init(&at));
	sigemptyset(&s);
	sigaddset(&s, SIGUSR2);
	OK(posix_spawnattr_setsigmask(&at, &s));
	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	OK(posix_spawnattr_setsigdefault(&at, &s));
	OK(posix_spawnattr_setpgroup(&at, 0));
	OK(posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
	run("attributes", NULL, &at, none, "four");
	OK(posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSID));
	run("own session", NULL, &at, none, "five");
	SHOWE(posix_spawnattr_setflags(&at, 0x4000));
	OK(posix_spawnattr_destroy(&at));

	SHOWE(posix_spawn(&pid, "/no/such/program", NULL, NULL, args, none));
	SHOWE(posix_spawn(&pid, "five", NULL, NULL, args, none));
	SHOWE(posix_spawn(&pid, ".", NULL, NULL, args, none));
	SHOWE(posix_spawnp(&pid, "no-such-program-anywhere", NULL, NULL, args, environ));
	OK(posix_spawn_file_actions_init(&fa));
	OK(posix_spawn_file_actions_addopen(&fa, 4, "missing", O_RDONLY, 0));
	SHOWE(posix_spawn(&pid, "/proc/self/exe", &fa, NULL, args, none));
	SHOWE(posix_spawn_file_actions_addclose(&fa, -1));
	OK(posix_spawn_file_actions_destroy(&fa));
	SHOW(waitpid(-1, NULL, 0));
	return 0;
}
