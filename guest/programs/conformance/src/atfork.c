// pthread_atfork: order of prepare, parent and child handlers; a mutex carried safely over fork in a threaded program.
#include "conformance.h"

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
static int guarded;

static const char *note[20];
static int notes;

static void prepare1(void) { note[notes++] = "prepare 1"; OK(pthread_mutex_lock(&mu)); }
static void parent1(void) { OK(pthread_mutex_unlock(&mu)); note[notes++] = "parent 1"; }
static void child1(void) { OK(pthread_mutex_unlock(&mu)); note[notes++] = "child 1"; }
static void prepare2(void) { note[notes++] = "prepare 2"; }
static void parent2(void) { note[notes++] = "parent 2"; }
static void child2(void) { note[notes++] = "child 2"; }

static void show(const char *who)
{
	printf("%s:", who);
	for (int i = 0; i < notes; i++)
		printf(" %s%c", note[i], i == notes - 1 ? '\n' : ',');
	notes = 0;
}

static void *busy(void *arg)
{
	(void)arg;
	while (!stop) {
		OK(pthread_mutex_lock(&mu));
		guarded++;
		guarded--;
		OK(pthread_mutex_unlock(&mu));
	}
	return NULL;
}

int main(void)
{
	SHOWE(pthread_atfork(prepare1, parent1, child1));
	SHOWE(pthread_atfork(prepare2, parent2, child2));
	SHOWE(pthread_atfork(NULL, NULL, NULL));
	pthread_t t = start(busy, NULL);
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			OK(pthread_mutex_lock(&mu));
			CHECK(guarded == 0);
			OK(pthread_mutex_unlock(&mu));
			show("child");
			_exit(i);
		}
		printf("%s\n", status_text(wait_for(pid)));
		show("parent");
	}
	stop = true;
	finish(t);
	return 0;
}
