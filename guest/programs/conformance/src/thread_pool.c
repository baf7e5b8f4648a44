// A thread pool with a work queue, nested submissions and futures; a parallel merge sort on it; orderly shutdown.
#include "conformance.h"

enum { WORKERS = 5, N = 4000 };

struct job {
	void (*run)(struct job *);
	struct job *next;
	int low, high;
	atomic_int *pending;
};

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static struct job *queue;
static bool closing;
static int executed, data[N], scratch[N];

static void submit(struct job *j)
{
	OK(pthread_mutex_lock(&mu));
	j->next = queue;
	queue = j;
	OK(pthread_cond_signal(&more));
	OK(pthread_mutex_unlock(&mu));
}

static void *worker(void *arg)
{
	OK(pthread_mutex_lock(&mu));
	for (;;) {
		while (queue == NULL && !closing)
			OK(pthread_cond_wait(&more, &mu));
		if (queue == NULL)
			break;
		struct job *j = queue;
		queue = j->next;
		executed++;
		OK(pthread_mutex_unlock(&mu));
		j->run(j);
		OK(pthread_mutex_lock(&mu));
		OK(pthread_cond_broadcast(&done));
	}
	OK(pthread_mutex_unlock(&mu));
	return arg;
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void sort_part(struct job *j)
{
	qsort(data + j->low, j->high - j->low, sizeof data[0], by_value);
	(*j->pending)--;
}

static void merge(struct job *j)
{
	int mid = (j->low + j->high) / 2, a = j->low, b = mid;
	for (int i = j->low; i < j->high; i++)
		scratch[i] = b >= j->high || (a < mid && data[a] <= data[b]) ? data[a++] : data[b++];
	memcpy(data + j->low, scratch + j->low, (j->high - j->low) * sizeof data[0]);
	(*j->pending)--;
}

static void await(atomic_int *pending)
{
	OK(pthread_mutex_lock(&mu));
	while (*pending > 0)
		OK(pthread_cond_wait(&done, &mu));
	OK(pthread_mutex_unlock(&mu));
}

int main(void)
{
	pthread_t t[WORKERS];
	for (int i = 0; i < WORKERS; i++)
		t[i] = start(worker, NULL);
	uint32_t x = 1;
	for (int i = 0; i < N; i++) {
		x = x * 1103515245 + 12345;
		data[i] = x >> 8 & 0xffff;
	}
	struct job job[16];
	for (int parts = 16; parts >= 1; parts /= 2) {
		atomic_int pending = parts;
		for (int i = 0; i < parts; i++) {
			job[i] = (struct job){.run = parts == 16 ? sort_part : merge, .low = N / parts * i, .high = N / parts * (i + 1), .pending = &pending};
			submit(&job[i]);
		}
		await(&pending);
	}
	for (int i = 1; i < N; i++)
		CHECK(data[i - 1] <= data[i]);
	unsigned long sum = 0;
	for (int i = 0; i < N; i++)
		sum = sum * 31 + data[i];
	OK(pthread_mutex_lock(&mu));
	closing = true;
	OK(pthread_cond_broadcast(&more));
	OK(pthread_mutex_unlock(&mu));
	for (int i = 0; i < WORKERS; i++)
		finish(t[i]);
	printf("executed %d, sum %lx\n", executed, sum);
	return 0;
}
