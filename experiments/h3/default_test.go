package h3

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

// dynamic are programs of the suite that are also tried with shared libraries.
var dynamic = []string{"bounded-buffer", "deadlock", "racey", "frost-figure-1a", "mysql-644", "dekker", "h3-figure-2"}

// Programs that are linked by default look up functions at their first calls, in a thread that the
// schedule determines. Layouts of their stubs differ.
func TestFunctionsThatAreLookedUpAtTheirFirstCall(t *testing.T) {
	b := &bug{class: machine.FailureAssertion, sched: fine}
	marked := gcctest.C(t, stack, "-O2", "-fcf-protection", "-Wl,-z,lazy,-z,ibtplt")
	reproduceSeeds(t, b, marked)
	for i := range bugs {
		if b := &bugs[i]; testsize.Long() || slices.Contains(dynamic, b.program) {
			t.Run(b.program, func(t *testing.T) { reproduceSeeds(t, b, buildVariant(t, b.program, false)) })
		}
	}
}

// Exceptions are thrown and caught, or end the program; strings compare addresses of what was
// allocated with those of literals.
func TestProgramsInCPlusPlus(t *testing.T) {
	bin := gcctest.File(t, filepath.Join("testdata", "stock.cpp"), "-O2", "-lstdc++")
	for _, b := range []*bug{
		{class: machine.FailureAssertion, sched: sched.Options{Policy: sched.Random, Quantum: 100}},
		{class: machine.FailureAssertion, args: "strict", sched: sched.Options{Policy: sched.Random, Quantum: 50}},
	} {
		t.Run(b.args, func(t *testing.T) { reproduceSeeds(t, b, bin) })
	}
}

// holding has a thread hold a lock when it creates the second one, as libwebp does. An addition is lost if both
// threads read the counter before one has written it.
const holding = `
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int started, begun, count;
static void *body(void *arg)
{
	started = 1;
	int seen = count;
	count = seen + 1;
	pthread_mutex_lock(&lock);
	begun++;
	pthread_mutex_unlock(&lock);
	return arg;
}
int main(void)
{
	pthread_t thread;
	pthread_mutex_lock(&lock);
	pthread_create(&thread, 0, body, 0);
	while (!started) ;
	int seen = count;
	count = seen + 1;
	begun++;
	pthread_mutex_unlock(&lock);
	pthread_join(thread, 0);
	assert(count == 2 && begun == 2);
}
`

func TestLockThatIsHeldAtTheSecondThread(t *testing.T) {
	bin := gcctest.C(t, holding, "-O2")
	reproduceSeeds(t, &bug{class: machine.FailureAssertion, sched: fine}, bin)
}

// asking has threads ask for the time, by each call for it, and sleep. Added is less than it should
// be if both threads read it before one has written it.
const asking = `
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
static time_t begin;
static int added;
static void *body(void *arg)
{
	for (int i = 0; i < 5; i++) {
		struct timespec now, unit;
		struct timeval day, while_ = {0, 100};
		clock_gettime(CLOCK_MONOTONIC, &now);
		clock_getres(CLOCK_REALTIME, &unit);
		gettimeofday(&day, 0);
		if (time(0) - begin > 60 || day.tv_sec < begin || unit.tv_nsec != 1)
			break;
		int seen = added;
		poll(0, 0, 1);
		added = seen + 1;
		select(0, 0, 0, 0, &while_);
	}
	return arg;
}
int main(void)
{
	pthread_t threads[2];
	begin = time(0);
	pthread_create(&threads[0], 0, body, 0);
	pthread_create(&threads[1], 0, body, 0);
	pthread_join(threads[0], 0);
	pthread_join(threads[1], 0);
	assert(added == 10);
	return 0;
}`

// polling loses the last byte if the thread that polls finds nothing before the last byte is sent,
// and the end after it.
const polling = `
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>
static int ends[2], received, ended;
static void *nothing(void *arg) { return arg; }
static void *send_(void *arg)
{
	for (char c = 0; c < 3; c++)
		if (write(ends[1], &c, 1) != 1)
			return arg;
	ended = 1;
	return arg;
}
static void *receive(void *arg)
{
	struct pollfd from = {.fd = ends[0], .events = POLLIN};
	char c;
	for (;;) {
		if (poll(&from, 1, 0) == 1)
			received += read(ends[0], &c, 1);
		else if (ended)
			return arg;
	}
}
int main(void)
{
	pthread_t threads[2];
	pthread_create(&threads[0], 0, nothing, 0);
	pthread_join(threads[0], 0);
	if (pipe(ends))
		return 1;
	pthread_create(&threads[0], 0, send_, 0);
	pthread_create(&threads[1], 0, receive, 0);
	pthread_join(threads[0], 0);
	pthread_join(threads[1], 0);
	assert(received == 3);
	return 0;
}`

// What clocks show and which descriptors are ready is not in a branch trace.
func TestTimeAndPoll(t *testing.T) {
	b := &bug{class: machine.FailureAssertion, sched: sched.Options{Policy: sched.Random, Quantum: 50}}
	reproduceSeeds(t, b, gcctest.C(t, asking, "-O2"))
	b.sched.Quantum = 400
	reproduceSeeds(t, b, gcctest.C(t, polling, "-O2"))
}

// popping frees what it takes; a push that another one overtakes brings freed memory back.
const popping = `
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
struct node {
	struct node *next;
};
static struct node *volatile head;
static sem_t pushed;
static void *push(void *arg)
{
	for (int i = 0; i < 3; i++) {
		struct node *n = malloc(sizeof *n), *next = head;
		n->next = next;
		head = n;
		sem_post(&pushed);
	}
	return arg;
}
static void *pop(void *arg)
{
	for (int i = 0; i < 6; i++) {
		sem_wait(&pushed);
		struct node *n = head;
		if (!n)
			abort();
		head = n->next;
		free(n);
	}
	return arg;
}
int main(void)
{
	pthread_t threads[3];
	sem_init(&pushed, 0, 0);
	pthread_create(&threads[0], 0, push, 0);
	pthread_create(&threads[1], 0, push, 0);
	pthread_create(&threads[2], 0, pop, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], 0);
	return 0;
}`

// releasing has two threads give up the last reference to memory.
const releasing = `
#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t start;
static volatile int references;
static char *content;
static void *release(void *arg)
{
	for (int round = 0; round < 5; round++) {
		if (arg) {
			references = 2;
			content = malloc(2000);
		}
		pthread_barrier_wait(&start);
		references--;
		if (references == 0)
			free(content);
		pthread_barrier_wait(&start);
	}
	return arg;
}
int main(void)
{
	pthread_t threads[2];
	pthread_barrier_init(&start, 0, 2);
	pthread_create(&threads[0], 0, release, 0);
	pthread_create(&threads[1], 0, release, &start);
	pthread_join(threads[0], 0);
	pthread_join(threads[1], 0);
	return 0;
}`

// A schedule frees nothing twice if the recorded run did not, and does if that was its failure.
func TestMemoryThatIsFreedTwice(t *testing.T) {
	b := &bug{class: machine.FailureAssertion, sched: finest}
	reproduceSeeds(t, b, gcctest.C(t, popping, "-O2"))
	b.sched = fine
	reproduceCount(t, b, gcctest.C(t, releasing, "-O2"), 2)
}

// lasting has threads that last for some time.
const lasting = `
#include <assert.h>
#include <pthread.h>
#include <time.h>
static int added;
static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}
static void *body(void *arg)
{
	int seen = added;
	for (long begin = now(); now() - begin < 3000;) ;
	added = seen + 1;
	return arg;
}
int main(void)
{
	pthread_t threads[2];
	pthread_create(&threads[0], 0, body, 0);
	pthread_create(&threads[1], 0, body, 0);
	pthread_join(threads[0], 0);
	pthread_join(threads[1], 0);
	assert(added == 2);
	return 0;
}`

// A path that depends on the time is refused with the places in the program and the reason.
func TestPathsThatDependOnTheTime(t *testing.T) {
	b := &bug{class: machine.FailureAssertion, sched: sched.Options{Policy: sched.Random, Quantum: 50}}
	bin := gcctest.C(t, lasting, "-O2", "-g")
	for seed := uint64(1); seed <= 50; seed++ {
		path, _, failed := record(t, b, bin, seed, nil)
		if !failed {
			continue
		}
		r, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		_, err = r.Reproduce(t.Context(), Options{Now: time.Now})
		if says := `body \(p.c:\d+\), after \d+ instructions: it would continue at \w+ \(p.c:\d+\), and its recorded branches continue at \w+ \(p.c:\d+\); it has asked for the time before`; err == nil || !regexp.MustCompile(says).MatchString(err.Error()) {
			t.Errorf("seed %d: %v", seed, err)
		}
		return
	}
	t.Error("none of 50 seeds fails")
}
