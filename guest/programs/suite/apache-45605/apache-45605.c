// apache-45605: a listener that accepts connections only when a worker is idle,
// and hands them over in a queue.
//
// A worker that becomes idle adds 1 to the number of idle workers and, when that
// was 0, wakes the listener; the listener subtracts 1. In the buggy form the
// listener does not check the number again when it wakes. When the worker is
// slow to signal, the listener has meanwhile taken that worker without waiting,
// passed through its loop, and waits for the next: the late signal wakes it
// although no worker is idle, and the number becomes negative.
#include <netinet/in.h>
#include <sys/socket.h>

#include "suite.h"

static long threads = 2, connections = 12;

static volatile long idle; // workers; changed by atomic operations
static pthread_mutex_t idle_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t someone_idle = PTHREAD_COND_INITIALIZER;

static int *queue; // sockets
static long queue_first, queue_end;
static bool closed;
static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_changed = PTHREAD_COND_INITIALIZER;

static struct sockaddr_in address;

static long idle_now(void)
{
#ifdef BUGGY
	return idle; // race: idle
#else
	return __atomic_fetch_add(&idle, 0, __ATOMIC_SEQ_CST); // LOCK XADD: a load would be a MOV
#endif
}

static void become_idle(void)
{
	long before = __atomic_fetch_add(&idle, 1, __ATOMIC_SEQ_CST); // race: idle
	if (before == 0) {
		DELAY(10);
		pthread_mutex_lock(&idle_mutex);
		pthread_cond_signal(&someone_idle);
		pthread_mutex_unlock(&idle_mutex);
	}
}

static void take_idle_worker(void)
{
	if (idle_now() == 0) {
		pthread_mutex_lock(&idle_mutex);
#ifdef BUGGY
		if (idle_now() == 0)
			pthread_cond_wait(&someone_idle, &idle_mutex);
#else
		while (idle_now() == 0)
			pthread_cond_wait(&someone_idle, &idle_mutex);
#endif
		pthread_mutex_unlock(&idle_mutex);
	}
	long before = __atomic_fetch_sub(&idle, 1, __ATOMIC_SEQ_CST);
	assert(before > 0);
}

static void push(int socket)
{
	pthread_mutex_lock(&queue_mutex);
	queue[queue_end++] = socket;
	pthread_cond_signal(&queue_changed);
	pthread_mutex_unlock(&queue_mutex);
}

static void close_queue(void)
{
	pthread_mutex_lock(&queue_mutex);
	closed = true;
	pthread_cond_broadcast(&queue_changed);
	pthread_mutex_unlock(&queue_mutex);
}

// pop waits for a connection and returns -1 after the last one.
static int pop(void)
{
	int socket = -1;
	pthread_mutex_lock(&queue_mutex);
	while (queue_first == queue_end && !closed)
		pthread_cond_wait(&queue_changed, &queue_mutex);
	if (queue_first < queue_end)
		socket = queue[queue_first++];
	pthread_mutex_unlock(&queue_mutex);
	return socket;
}

static void *work(void *unused)
{
	for (;;) {
		become_idle();
		int connection = pop();
		if (connection < 0)
			return unused;
		char request;
		needed(recv(connection, &request, 1, 0), "recv");
		needed(send(connection, &request, 1, MSG_NOSIGNAL), "send");
		close(connection);
	}
}

static void *listen_for_connections(void *argument)
{
	int listener = *(int *)argument;
	for (long i = 0; i < connections; i++) {
		take_idle_worker();
		push(needed(accept(listener, NULL, NULL), "accept"));
	}
	close_queue();
	return NULL;
}

// request opens all connections, then waits for the answers.
static void request_all(void)
{
	int *sockets = allocate(connections, sizeof *sockets);
	for (long i = 0; i < connections; i++) {
		char letter = 'a' + i % 26;
		sockets[i] = needed(socket(AF_INET, SOCK_STREAM, 0), "socket");
		needed(connect(sockets[i], (struct sockaddr *)&address, sizeof address), "connect");
		needed(send(sockets[i], &letter, 1, MSG_NOSIGNAL), "send");
	}
	for (long i = 0; i < connections; i++) {
		char answer;
		if (recv(sockets[i], &answer, 1, 0) != 1 || answer != 'a' + i % 26)
			wrong("connection %ld has the wrong answer", i);
		close(sockets[i]);
	}
	free(sockets);
}

static int open_listener(void)
{
	socklen_t size = sizeof address;
	int listener = needed(socket(AF_INET, SOCK_STREAM, 0), "socket");
	address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	needed(bind(listener, (struct sockaddr *)&address, size), "bind");
	needed(listen(listener, connections), "listen");
	needed(getsockname(listener, (struct sockaddr *)&address, &size), "getsockname");
	return listener;
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('n', "CONNECTIONS", &connections, 1, 500),
		{0},
	});
	queue = allocate(connections, sizeof *queue);
	int listener = open_listener();
	pthread_t workers[MAX_THREADS], listening;
	for (long i = 0; i < threads; i++)
		start_thread(&workers[i], work, NULL);
	start_thread(&listening, listen_for_connections, &listener);

	request_all();

	pthread_join(listening, NULL);
	for (long i = 0; i < threads; i++)
		pthread_join(workers[i], NULL);
	close(listener);
	printf("apache-45605: %ld connections, correct\n", connections);
	free(queue);
	return 0;
}
