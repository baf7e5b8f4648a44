// User contexts: makecontext with arguments, generators, round robin of ten, successors, masks, one that moves to another thread.
#include "conformance.h"

#include <ucontext.h>

enum { SIZE = 65536, N = 10 };

static ucontext_t main_context, gen, coro[N], back;
static int produced, order[100], length;

static void generator(int from, int to, int step)
{
	for (int i = from; i < to; i += step) {
		produced = i;
		CHECK(swapcontext(&gen, &main_context) == 0);
	}
	produced = -1;
}

static void walker(int me)
{
	double x = me;
	for (int i = 0; i < 5; i++) {
		order[length++] = me;
		x = x * 1.5 + 1;
		CHECK(swapcontext(&coro[me], &coro[(me + 1) % N]) == 0);
	}
	if (me == 0)
		setcontext(&main_context);
}

static void make(ucontext_t *c, ucontext_t *next)
{
	CHECK(getcontext(c) == 0);
	c->uc_stack.ss_sp = malloc(SIZE);
	c->uc_stack.ss_size = SIZE;
	c->uc_link = next;
}

static void with_six(int a, int b, int c, int d, int e, int f)
{
	printf("arguments %d %d %d %d %d %d\n", a, b, c, d, e, f);
}

static void masks(void)
{
	sigset_t s;
	CHECK(sigprocmask(SIG_BLOCK, NULL, &s) == 0);
	printf("inside: USR1 blocked %d\n", sigismember(&s, SIGUSR1));
}

static pid_t seen[2];

static void traveller(void)
{
	seen[0] = gettid();
	CHECK(swapcontext(&gen, &main_context) == 0);
	seen[1] = gettid();
	setcontext(&back);
}

static void *carrier(void *arg)
{
	volatile bool been = false;
	CHECK(getcontext(&back) == 0);
	if (!been) {
		been = true;
		setcontext(&gen);
	}
	return arg;
}

int main(void)
{
	make(&gen, &main_context);
	makecontext(&gen, (void (*)(void))generator, 3, 3, 20, 4);
	for (;;) {
		CHECK(swapcontext(&main_context, &gen) == 0);
		if (produced < 0)
			break;
		printf("%d\n", produced);
	}
	make(&gen, &main_context);
	makecontext(&gen, (void (*)(void))with_six, 6, 1, -2, 3, -4, 5, -6);
	CHECK(swapcontext(&main_context, &gen) == 0);

	for (int i = 0; i < N; i++) {
		make(&coro[i], &main_context);
		makecontext(&coro[i], (void (*)(void))walker, 1, i);
	}
	CHECK(swapcontext(&main_context, &coro[0]) == 0);
	for (int i = 0; i < 5 * N; i++)
		CHECK(order[i] == i % N);
	printf("turns %d\n", length);

	// Each context has its own signal mask.
	make(&gen, &main_context);
	sigaddset(&gen.uc_sigmask, SIGUSR1);
	makecontext(&gen, masks, 0);
	CHECK(swapcontext(&main_context, &gen) == 0);
	sigset_t s;
	CHECK(sigprocmask(SIG_BLOCK, NULL, &s) == 0);
	printf("outside: USR1 blocked %d\n", sigismember(&s, SIGUSR1));

	// Started on one thread, ended on another.
	make(&gen, NULL);
	makecontext(&gen, traveller, 0);
	CHECK(swapcontext(&main_context, &gen) == 0);
	finish(start(carrier, NULL));
	printf("two threads: %d\n", seen[0] != seen[1] && seen[0] == gettid());

	volatile int again = 0;
	ucontext_t loop;
	CHECK(getcontext(&loop) == 0);
	if (again++ < 3)
		setcontext(&loop);
	printf("again %d\n", again);
	return 0;
}
