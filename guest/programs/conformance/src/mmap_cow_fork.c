// Copy on write over fork: private pages are separate after the first write on either side, shared ones never; grandchildren.
#include "conformance.h"

enum { PAGES = 64, PAGE = 4096 };

static int sum(const char *p)
{
	int s = 0;
	for (int i = 0; i < PAGES; i++)
		s += p[i * PAGE];
	return s;
}

int main(void)
{
	char *priv = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(priv != MAP_FAILED);
	char *shared = shared_memory(PAGES * PAGE);
	for (int i = 0; i < PAGES; i++)
		priv[i * PAGE] = shared[i * PAGE] = 1;
	int go[2], done[2];
	char c;
	CHECK(pipe(go) == 0 && pipe(done) == 0);

	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		// The parent has written every even page by now.
		CHECK(read(go[0], &c, 1) == 1);
		CHECK(sum(priv) == PAGES);
		for (int i = 1; i < PAGES; i += 2)
			priv[i * PAGE] = shared[i * PAGE] = 3;
		pid_t grandchild = fork();
		CHECK(grandchild >= 0);
		if (grandchild == 0) {
			CHECK(sum(priv) == PAGES / 2 + 3 * PAGES / 2);
			memset(priv, 9, PAGES * PAGE);
			_exit(sum(priv) == 9 * PAGES ? 0 : 1);
		}
		CHECK(wait_for(grandchild) == 0);
		CHECK(sum(priv) == PAGES / 2 + 3 * PAGES / 2);
		CHECK(write(done[1], "x", 1) == 1);
		_exit(0);
	}
	for (int i = 0; i < PAGES; i += 2)
		priv[i * PAGE] = shared[i * PAGE] = 2;
	CHECK(write(go[1], "x", 1) == 1);
	CHECK(read(done[0], &c, 1) == 1);
	printf("private %d, shared %d\n", sum(priv), sum(shared));
	printf("child: %s\n", status_text(wait_for(pid)));

	// The pages belong to the parent alone again; many generations in a row.
	for (int gen = 0; gen < 10; gen++) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			priv[gen * PAGE] = 50;
			_exit(sum(priv) & 127);
		}
		priv[0]++;
		printf("generation %d: %s\n", gen, status_text(wait_for(pid)));
	}
	printf("private %d\n", sum(priv));
	return 0;
}
