// A library to preload: it counts the calls that a program and its libraries
// make of each function, and prints the counts at the end, a line each. Calls
// that the C library makes of itself do not come here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#define FUNCTIONS(X) \
	X(pthread_mutex_init) X(pthread_mutex_destroy) X(pthread_mutex_lock) X(pthread_mutex_trylock) \
	X(pthread_mutex_timedlock) X(pthread_mutex_clocklock) X(pthread_mutex_unlock) \
	X(pthread_cond_init) X(pthread_cond_destroy) X(pthread_cond_wait) X(pthread_cond_timedwait) \
	X(pthread_cond_clockwait) X(pthread_cond_signal) X(pthread_cond_broadcast) \
	X(pthread_rwlock_init) X(pthread_rwlock_destroy) X(pthread_rwlock_rdlock) X(pthread_rwlock_tryrdlock) \
	X(pthread_rwlock_timedrdlock) X(pthread_rwlock_clockrdlock) X(pthread_rwlock_wrlock) \
	X(pthread_rwlock_trywrlock) X(pthread_rwlock_timedwrlock) X(pthread_rwlock_clockwrlock) X(pthread_rwlock_unlock) \
	X(pthread_barrier_init) X(pthread_barrier_destroy) X(pthread_barrier_wait) \
	X(sem_init) X(sem_destroy) X(sem_wait) X(sem_trywait) X(sem_timedwait) X(sem_clockwait) X(sem_post) \
	X(pthread_once) X(pthread_create) X(pthread_join) X(pthread_detach) X(pthread_cancel) \
	X(pthread_key_create) X(pthread_key_delete) \
	X(mtx_init) X(mtx_destroy) X(mtx_lock) X(mtx_trylock) X(mtx_timedlock) X(mtx_unlock) \
	X(cnd_init) X(cnd_destroy) X(cnd_wait) X(cnd_timedwait) X(cnd_signal) X(cnd_broadcast) \
	X(thrd_create) X(thrd_join) X(thrd_detach) X(call_once) X(tss_create) X(tss_delete)

#define DECLARE(name) __attribute__((visibility("hidden"))) long count_##name; __attribute__((visibility("hidden"))) void *real_##name;
FUNCTIONS(DECLARE)

// The wrapper counts and calls the real function, which it looks for at
// the first call with all argument registers saved.
#define WRAPPER(name) \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" \
		"lock incq count_" #name "(%rip)\n" \
		"cmpq $0, real_" #name "(%rip)\n" \
		"jne 1f\n" \
		"push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9; push %rax\n" \
		"lea 2f(%rip), %rdi\n" \
		"lea real_" #name "(%rip), %rsi\n" \
		"call find\n" \
		"pop %rax; pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi\n" \
		"1: jmp *real_" #name "(%rip)\n" \
		"2: .string \"" #name "\"\n" \
		".size " #name ", .-" #name "\n");
FUNCTIONS(WRAPPER)

__attribute__((visibility("hidden"), used)) void find(const char *name, void **real)
{
	*real = dlsym(RTLD_NEXT, name);
}

__attribute__((destructor)) static void report(void)
{
#define REPORT(name) \
	if (count_##name) dprintf(2, "COUNT %s %ld\n", #name, count_##name);
	FUNCTIONS(REPORT)
}
