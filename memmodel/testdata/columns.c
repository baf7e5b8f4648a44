// Runs litmus tests on the machine's own cores: a thread for each column executes the
// column's code in each round, all at once, on memory in its initial state. The tests are
// in the assembler file beside this one.
//
// usage: columns TEST ROUNDS
//
// It prints, as bytes, the columns' registers and the words of memory at the end
// of each round.
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct test {
  long columns;
  long registers;  // that are printed
  long words;      // of memory that the test touches
  // Executes a column's code and puts its registers where they are printed.
  void (*column[4])(long *registers);
  // Puts the words where they are printed, and gives them their initial values.
  void (*reset)(long *words);
  void (*begin)(void);  // initializes all of memory
};

extern const struct test tests[];

// Threads wait for each other by plain loads and stores in lines of their own, so that
// little happens between two rounds.
struct round {
  volatile long number;
  char rest[56];
};

static _Alignas(64) struct round started, done[4];
static const struct test *test;
static long rounds, size, *results;

// Is the end of a round: the others have ended theirs, and the next one is prepared.
static void finish(long round) {
  for (long i = 1; i < test->columns; i++)
    while (done[i].number != round)
      ;
  test->reset(results + (round - 1) * size + test->registers);
  __asm__ volatile("mfence" ::: "memory");
  started.number = round + 1;
  __asm__ volatile("mfence" ::: "memory");
}

static void *run(void *argument) {
  long column = (long)argument;
  void (*execute)(long *) = test->column[column];
  long *registers = results;
  for (long round = 1; round <= rounds; round++, registers += size) {
    while (started.number != round)
      ;
    execute(registers);
    done[column].number = round;
    if (!column) finish(round);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  test = &tests[atoi(argv[1])];
  rounds = atoi(argv[2]);
  size = test->registers + test->words;
  results = mmap(NULL, rounds * size * sizeof(long), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  void *locations = mmap((void *)0x100000, 4096, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_POPULATE, -1, 0);
  if (results == MAP_FAILED || locations == MAP_FAILED) return 3;
  test->begin();
  started.number = 1;
  pthread_t threads[4];
  for (long i = 1; i < test->columns; i++)
    if (pthread_create(&threads[i], NULL, run, (void *)i)) return 4;
  run(0);
  for (long i = 1; i < test->columns; i++) pthread_join(threads[i], NULL);
  const char *from = (const char *)results, *end = (const char *)(results + rounds * size);
  while (from < end) {
    ssize_t n = write(1, from, end - from);
    if (n <= 0) return 5;
    from += n;
  }
  return 0;
}
