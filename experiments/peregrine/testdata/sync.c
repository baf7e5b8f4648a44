#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t b;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t s;
static int turn, sum, made, pipes[2];
static void routine(void) {
	pthread_mutex_lock(&m);
	made++;
	pthread_mutex_unlock(&m);
	usleep(10);
}
static void *work(void *arg) {
	int me = (int)(long)arg;
	pthread_once(&once, routine);
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&m);
		while (turn % 4 != me) pthread_cond_wait(&c, &m);
		turn++;
		sum += turn;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
		sem_post(&s);
		pthread_barrier_wait(&b);
		if (me == 0) write(pipes[1], "x", 1);
		if (me == 1) { char ch; read(pipes[0], &ch, 1); }
		if (pthread_mutex_trylock(&m) == 0) {
			sum++, sum--;
			pthread_mutex_unlock(&m);
		}
	}
	return 0;
}
int main(void) {
	pthread_t t[4];
	pipe(pipes);
	sem_init(&s, 0, 0);
	pthread_barrier_init(&b, 0, 4);
	for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, work, (void *)i);
	for (int i = 0; i < 20; i++) sem_wait(&s);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	printf("%d %d\n", sum, made);
	return 0;
}
