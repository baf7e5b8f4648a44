package explore_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/experiments/explore"
	"github.com/heddle-dmt/heddle/memmodel"
)

// Programs in which threads wait for others in loops. The polled memory may have been used by no other
// thread when it begins to wait, and threads that wait may execute atomic instructions.
var waits = []struct {
	name, source string
	failsPSO     bool // its stores must be visible in order
}{
	{"test and set", `
static int taken, inside;
static void thread(long number) {
  while (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE));
  STORE(inside, LOAD(inside) + 1);
  if (LOAD(inside) != 1) fail();
  STORE(inside, 0);
  STORE(taken, 0);
}
static void run(void) { create(0); create(1); create(2); }`, true},
	{"compare and swap", `
static int taken, inside;
static void thread(long number) {
  int free = 0;
  while (!__atomic_compare_exchange_n(&taken, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) free = 0;
  STORE(inside, LOAD(inside) + 1);
  if (LOAD(inside) != 1) fail();
  STORE(inside, 0);
  __atomic_exchange_n(&taken, 0, __ATOMIC_RELEASE);
}
static void run(void) { create(0); create(1); create(2); }`, false},
	{"barrier", `
static int left = 3, sense, here[3];
static void thread(long number) {
  STORE(here[number], 1);
  if (__atomic_fetch_sub(&left, 1, __ATOMIC_ACQ_REL) == 1)
    STORE(sense, 1);
  else
    while (!LOAD(sense));
  if (!LOAD(here[0]) || !LOAD(here[1]) || !LOAD(here[2])) fail();
}
static void run(void) { create(0); create(1); create(2); }`, false},
	{"queue lock", `
struct node { struct node *next; int waits; } nodes[2], *tail;
static int inside;
static void thread(long number) {
  struct node *mine = &nodes[number], *before, *self = mine;
  STORE(mine->waits, 1);
  before = __atomic_exchange_n(&tail, mine, __ATOMIC_ACQ_REL);
  if (before) {
    STORE(before->next, mine);
    while (LOAD(mine->waits));
  }
  if (LOAD(inside)) fail();
  STORE(inside, 1);
  STORE(inside, 0);
  if (!LOAD(mine->next)) {
    if (__atomic_compare_exchange_n(&tail, &self, (struct node *)0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    while (!LOAD(mine->next));
  }
  STORE(mine->next->waits, 0);
}
static void run(void) { create(0); create(1); }`, true},
	{"flags, in a function", `
static int flags[2], here[2];
__attribute__((noinline)) static int isSet(int *flag) { return LOAD(*flag); }
static void thread(long number) {
  STORE(here[number], 1);
  STORE(flags[1 - number], 1);
  while (!isSet(&flags[number])) __asm__ volatile("pause");
  if (!LOAD(here[1 - number])) fail();
}
static void run(void) { create(0); create(1); }`, true},
}

// TestWaits: correct programs are verified, and no wait is a hang. Those that need stores in order fail under
// PSO.
func TestWaits(t *testing.T) {
	for _, w := range waits {
		t.Run(w.name, func(t *testing.T) {
			program := freestanding(t, "#include \"threads.h\"\n"+w.source)
			for _, model := range memmodel.Models() {
				r := exploreProgram(t, program, explore.Options{Model: model})
				if fails := w.failsPSO && model == memmodel.PSO; r.Found != fails || r.Complete == fails || r.Executions == 0 {
					t.Errorf("%v: %+v", model, *r)
				}
			}
		})
	}
}

const countsRounds = `
#include "threads.h"
static int ready, value;
static void thread(long number) {
  if (number == 1) {
    STORE(value, 1);
    STORE(ready, 1);
  } else {
    volatile long rounds = 0;
    while (!LOAD(ready)) rounds++;
    if (LOAD(value) != 1) fail();
  }
}
static void run(void) { create(0); create(1); }
`

// TestCountsRounds: a thread that counts the rounds of its wait is in another state in each of them. It does not
// hang as long as another thread can continue.
func TestCountsRounds(t *testing.T) {
	r := exploreProgram(t, freestanding(t, countsRounds), explore.Options{Executions: 3})
	if r.Found || r.Executions == 0 {
		t.Errorf("%+v", *r)
	}
}
