// Threads use a block and free it if it is there: two of them may see it.
#include <pthread.h>
#include <stdlib.h>
static char *volatile block;
static void *visit(void *unused) {
	char *mine = block;
	if (!mine) return unused;
	*(volatile char *)mine = 1;
	block = 0;
	free(mine);
	return unused;
}
int main(void) {
	pthread_t threads[2];
	block = malloc(8);
	for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, visit, 0);
	for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
	return 0;
}
