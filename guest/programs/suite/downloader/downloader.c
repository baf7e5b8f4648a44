// downloader: fetches a file in segments over several connections at once, and
// includes its server.
//
// The server thread accepts connections on the loopback interface and starts a
// thread for each. The client asks for the size, cuts the file into segments,
// and has a thread fetch each; the progress is noted, under a lock, in memory
// and in a state file, from which an interrupted download continues. With -x
// the download is interrupted by SIGINT after that number of kilobytes: a thread
// that waits for the signal cancels the fetching threads and takes the lock to
// read the progress; then the download is resumed.
//
// In the buggy form a fetching thread can be cancelled while it writes the state
// file and holds the lock, which then no thread releases.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include "suite.h"

#define STOP "STOP\r\n\r\n" // the request that ends the server

enum { PIECE = 4096, MAX_CONNECTIONS = 3 * MAX_THREADS, REQUEST = 256 };

struct segment {
	long begin, end; // bytes of the file
	long done;       // bytes fetched
};

static long threads = 4, kilobytes = 256, interrupt_kilobytes = 0, port = 0, seed = 1;
static const char *role = "both";

static struct segment segments[MAX_THREADS];
static pthread_t fetchers[MAX_THREADS];
static pthread_mutex_t progress_mutex = PTHREAD_MUTEX_INITIALIZER;
static long total, finished, interrupt_at;
static bool interrupted;
static FILE *result, *state;

static unsigned char content(long i)
{
	return random_at(seed, i / 8) >> i % 8 * 8;
}

static void send_all(int connection, const char *data, long size)
{
	for (long sent = 0; sent < size;) {
		long got = send(connection, data + sent, size - sent, MSG_NOSIGNAL);
		if (got < 0)
			return; // the client has closed the connection
		sent += got;
	}
}

static void send_text(int connection, const char *text)
{
	send_all(connection, text, strlen(text));
}

// receive_head reads up to the empty line that ends a request or the head of a
// reply. It reports whether there was one.
static bool receive_head(int connection, char head[REQUEST])
{
	long size = 0;
	while (size < REQUEST - 1 && recv(connection, head + size, 1, 0) == 1) {
		head[++size] = 0;
		if (size >= 4 && strcmp(head + size - 4, "\r\n\r\n") == 0)
			return true;
	}
	return false;
}

static void send_range(int connection, long begin, long end)
{
	char head[REQUEST], piece[PIECE];
	snprintf(head, sizeof head, "HTTP/1.0 206 Partial Content\r\nContent-Length: %ld\r\n\r\n", end - begin);
	send_text(connection, head);
	for (long at = begin; at < end;) {
		long size = 0;
		while (size < PIECE && at < end)
			piece[size++] = content(at++);
		send_all(connection, piece, size);
	}
}

struct connection {
	int socket;
	pthread_t thread;
};

static void *answer(void *argument)
{
	struct connection *c = argument;
	char request[REQUEST];
	long first, last;
	if (receive_head(c->socket, request)) {
		if (sscanf(request, "GET / HTTP/1.0\r\nRange: bytes=%ld-%ld", &first, &last) == 2)
			send_range(c->socket, first, last + 1);
		else if (strncmp(request, "HEAD / ", 7) == 0)
			send_range(c->socket, kilobytes * 1000, kilobytes * 2000);
		else
			send_text(c->socket, "HTTP/1.0 400 Bad Request\r\n\r\n");
	}
	close(c->socket);
	return NULL;
}

// serve answers connections until one asks it to stop. One that is
// closed before it asks for anything is that of a cancelled thread.
static void *serve(void *argument)
{
	int listener = *(int *)argument;
	static struct connection connections[MAX_CONNECTIONS];
	long count = 0;
	char first = 0;
	while (count < MAX_CONNECTIONS && first != *STOP) {
		struct connection *c = &connections[count];
		c->socket = needed(accept(listener, NULL, NULL), "accept");
		if (recv(c->socket, &first, 1, MSG_PEEK) == 1 && first != *STOP) {
			start_thread(&c->thread, answer, c);
			count++;
		} else {
			close(c->socket);
		}
	}
	for (long i = 0; i < count; i++)
		pthread_join(connections[i].thread, NULL);
	return NULL;
}

static struct sockaddr_in loopback(long number)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(number)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

// listen_anywhere opens a listening socket and sets port to its port.
static int listen_anywhere(void)
{
	struct sockaddr_in address = loopback(port);
	socklen_t size = sizeof address;
	int listener = needed(socket(AF_INET, SOCK_STREAM, 0), "socket");
	needed(bind(listener, (struct sockaddr *)&address, size), "bind");
	needed(listen(listener, MAX_CONNECTIONS), "listen");
	needed(getsockname(listener, (struct sockaddr *)&address, &size), "getsockname");
	port = ntohs(address.sin_port);
	return listener;
}

static int connect_to_server(void)
{
	struct sockaddr_in address = loopback(port);
	int connection = needed(socket(AF_INET, SOCK_STREAM, 0), "socket");
	needed(connect(connection, (struct sockaddr *)&address, sizeof address), "connect");
	return connection;
}

static void stop_server(void)
{
	int connection = connect_to_server();
	send_text(connection, STOP);
	close(connection);
}

// ask_size asks the server how long the file is.
static long ask_size(void)
{
	char head[REQUEST];
	long size = -1;
	int connection = connect_to_server();
	send_text(connection, "HEAD / HTTP/1.0\r\n\r\n");
	if (!receive_head(connection, head) || sscanf(head, "HTTP/1.0 206 Partial Content\r\nContent-Length: %ld", &size) != 1)
		wrong("the server says %s", head);
	close(connection);
	return size;
}

static void close_connection(void *connection)
{
	close(*(int *)connection);
}

static void write_at(FILE *file, const void *data, long size, long offset)
{
	if (pwrite(fileno(file), data, size, offset) != size)
		wrong("cannot write: %s", strerror(errno));
}

// note_progress counts fetched bytes, and requests a due interruption.
static void note_progress(struct segment *s, long size)
{
	pthread_mutex_lock(&progress_mutex);
	s->done += size;
	total += size;
	DELAY(5);
	write_at(state, s, sizeof *s, (s - segments) * sizeof *s);
	if (interrupt_at > 0 && total >= interrupt_at && !interrupted) {
		interrupted = true;
		kill(getpid(), SIGINT);
	}
	pthread_mutex_unlock(&progress_mutex);
}

// note_end signals the controlling thread when all segments have been fetched.
static void note_end(void)
{
	pthread_mutex_lock(&progress_mutex);
	if (++finished == threads && !interrupted)
		kill(getpid(), SIGUSR1);
	pthread_mutex_unlock(&progress_mutex);
}

static void fetch_pieces(int connection, struct segment *s, long missing)
{
	char piece[PIECE];
	while (missing > 0) {
		long got = recv(connection, piece, missing < PIECE ? missing : PIECE, 0);
		if (got <= 0)
			wrong("the server has gone");
#ifndef BUGGY
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
#endif
		write_at(result, piece, got, s->end - missing);
		missing -= got;
		note_progress(s, got);
#ifndef BUGGY
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
#endif
	}
}

static void *fetch(void *argument)
{
	struct segment *s = argument;
	long begin = s->begin + s->done;
	char head[REQUEST];
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	int connection = connect_to_server();
	pthread_cleanup_push(close_connection, &connection);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	snprintf(head, sizeof head, "GET / HTTP/1.0\r\nRange: bytes=%ld-%ld\r\n\r\n", begin, s->end - 1);
	send_text(connection, head);
	if (!receive_head(connection, head) || strncmp(head, "HTTP/1.0 206", 12) != 0)
		wrong("the server says %s", head);
	fetch_pieces(connection, s, s->end - begin);
	pthread_cleanup_pop(1);
	note_end();
	return NULL;
}

// control_fetchers waits for SIGINT, which ends the download early, or SIGUSR1,
// which says that it is complete, and for the fetching threads.
static void *control_fetchers(void *unused)
{
	sigset_t set;
	int signal;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &signal);
	for (long i = 0; i < threads && signal == SIGINT; i++)
		pthread_cancel(fetchers[i]);
	pthread_mutex_lock(&progress_mutex);
	long noted = 0;
	for (long i = 0; i < threads; i++)
		noted += segments[i].done;
	if (noted != total)
		wrong("%ld bytes are noted of %ld", noted, total);
	pthread_mutex_unlock(&progress_mutex);
	for (long i = 0; i < threads; i++)
		pthread_join(fetchers[i], NULL);
	return unused;
}

static void fetch_all(void)
{
	pthread_t controller;
	finished = 0;
	for (long i = 0; i < threads; i++)
		start_thread(&fetchers[i], fetch, &segments[i]);
	start_thread(&controller, control_fetchers, NULL);
	pthread_join(controller, NULL);
}

static void download(long size)
{
	interrupt_at = interrupt_kilobytes * 1000;
	for (long i = 0; i < threads; i++)
		segments[i] = (struct segment){share_start(size, threads, i), share_start(size, threads, i + 1), 0};
	fetch_all();
	if (interrupted) {
		interrupted = false;
		interrupt_at = 0;
		if (pread(fileno(state), segments, threads * sizeof *segments, 0) < 0)
			wrong("the state is lost");
		for (long i = 0; i < threads; i++)
			if (segments[i].end == 0) // no part of it had arrived
				segments[i] = (struct segment){share_start(size, threads, i), share_start(size, threads, i + 1), 0};
		fetch_all();
	}
}

static void check(long size)
{
	char piece[PIECE];
	for (long at = 0; at < size;) {
		long got = pread(fileno(result), piece, PIECE, at);
		for (long i = 0; i < got; i++, at++)
			if ((unsigned char)piece[i] != content(at))
				wrong("byte %ld differs", at);
		if (got <= 0)
			wrong("there are %ld bytes of %ld", at, size);
	}
	printf("downloader: %ld bytes, correct\n", size);
}

static void run_client(void)
{
	result = tmpfile();
	state = tmpfile();
	needed(result && state ? 0 : -1, "tmpfile");
	long size = ask_size();
	download(size);
	stop_server();
	check(size);
	fclose(result);
	fclose(state);
}

int main(int argc, char **argv)
{
	const struct argument known[] = {
		THREADS(&threads),
		NUMBER('n', "KILOBYTES", &kilobytes, 1, 1000000),
		NUMBER('x', "INTERRUPT_AFTER_KILOBYTES", &interrupt_kilobytes, 0, 1000000),
		TEXT('r', "both|server|client", &role),
		NUMBER('P', "PORT", &port, 0, 65535),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	};
	read_arguments(argc, argv, known);
	bool server = strcmp(role, "client") != 0, client = strcmp(role, "server") != 0;
	if (server && client && strcmp(role, "both") != 0)
		usage_error(known);

	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	if (client)
		pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_t thread;
	int listener;
	if (server) {
		listener = listen_anywhere();
		start_thread(&thread, serve, &listener);
	}
	if (server && !client) {
		printf("port %ld\n", port);
		fflush(stdout);
	}
	if (client)
		run_client();
	if (server) {
		pthread_join(thread, NULL);
		close(listener);
	}
	return 0;
}
