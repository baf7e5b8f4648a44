// A server with a pool of threads and a client, for the tests of windows.
//
//	pool serve PORT THREADS [TICKERS]  answers each line with the number of lines that its shared table has had,
//	                           until it gets SIGTERM; with THREADS below 0 the table is not locked. Each of
//	                           the TICKERS sleeps for 7, 10, 13 ... ms again and again, and
//	                           all answers are the same.
//	pool ask PORT CLIENTS N    N rounds, in each of which every client sends a line and waits for the answer
//	pool slow PORT             sends half a line, and waits for the end
//	pool crash PORT            has the server crash
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "heddle.h"

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER, table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static int queue[4096], head, tail, poller, locked, tickers;
static unsigned long lines, ticks, table[64];
static char *buffers[4096];

static void count(const char *line) {
  unsigned long slot = (unsigned char)line[0] % 64;
  if (locked) pthread_mutex_lock(&table_lock);
  unsigned long seen = table[slot] * 31 + lines;
  for (volatile int i = 0; i < 2000; i++)
    ;
  table[slot] = seen + line[1];
  lines++;
  if (locked) pthread_mutex_unlock(&table_lock);
}

static void watch(int fd, int op) {
  struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = fd};
  epoll_ctl(poller, op, fd, &e);
}

static void *work(void *unused) {
  (void)unused;
  for (;;) {
    pthread_mutex_lock(&queue_lock);
    while (head == tail) pthread_cond_wait(&queue_filled, &queue_lock);
    int fd = queue[head++ % 4096];
    if (head == tail) head = tail = 0;
    pthread_mutex_unlock(&queue_lock);
    if (!buffers[fd]) buffers[fd] = calloc(1, 256);
    char *line = buffers[fd];
    size_t have = strlen(line);
    ssize_t n = read(fd, line + have, 255 - have);
    if (n <= 0) {
      free(line);
      buffers[fd] = NULL;
      close(fd);
      continue;
    }
    line[have + n] = 0;
    if (strchr(line, '\n')) {
      if (line[0] == '!') abort();
      count(line);
      char answer[64];
      n = snprintf(answer, sizeof answer, tickers ? "seen\n" : "%lu\n", lines);
      line[0] = 0;
      if (write(fd, answer, n) != n) exit(4);
    }
    watch(fd, EPOLL_CTL_MOD);
  }
}

static void *tick(void *ms) {
  for (;;) {
    usleep((long)ms * 1000);
    pthread_mutex_lock(&queue_lock);
    ticks++;
    pthread_mutex_unlock(&queue_lock);
  }
}

static void finish(int sig) {
  (void)sig;
  _exit(0);
}

static int serve(int port, int threads) {
  locked = threads > 0;
  heddle_state(&lines, sizeof lines, "lines so far");
  signal(SIGTERM, finish);
  int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (struct sockaddr *)&a, sizeof a) || listen(listener, 128)) return 3;
  poller = epoll_create1(0);
  watch(listener, EPOLL_CTL_ADD);
  for (int i = 0; i < abs(threads); i++) {
    pthread_t t;
    pthread_create(&t, NULL, work, NULL);
  }
  for (int i = 0; i < tickers; i++) {
    pthread_t t;
    pthread_create(&t, NULL, tick, (void *)(7 + 3L * i));
  }
  for (;;) {
    struct epoll_event e[16];
    int n = epoll_wait(poller, e, 16, 1000);
    for (int i = 0; i < n; i++) {
      if (e[i].data.fd == listener) {
        watch(accept(listener, NULL, NULL), EPOLL_CTL_ADD);
        watch(listener, EPOLL_CTL_MOD);
        continue;
      }
      pthread_mutex_lock(&queue_lock);
      queue[tail++ % 4096] = e[i].data.fd;
      pthread_cond_signal(&queue_filled);
      pthread_mutex_unlock(&queue_lock);
    }
  }
}

static int dial(int port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (connect(fd, (struct sockaddr *)&a, sizeof a)) exit(5);
  return fd;
}

static int ask(int port, int clients, int rounds) {
  int *fd = calloc(clients, sizeof *fd);
  for (int i = 0; i < clients; i++) fd[i] = dial(port);
  int answers = 0;
  for (int r = 0; r < rounds; r++) {
    for (int i = 0; i < clients; i++) {
      char line[8];
      int n = snprintf(line, sizeof line, "%c%c\n", 'a' + i % 26, '0' + r % 10);
      if (write(fd[i], line, n) != n) return 6;
    }
    for (int i = 0; i < clients; i++) {
      char answer[64];
      if (read(fd[i], answer, sizeof answer) > 0) answers++;
    }
  }
  printf("%d answers\n", answers);
  return 0;
}

static int half(int port, const char *text) {
  char c;
  int fd = dial(port);
  if (write(fd, text, strlen(text)) < 0) return 6;
  return read(fd, &c, 1) > 0;
}

int main(int argc, char **argv) {
  int port = argc > 2 ? atoi(argv[2]) : 0;
  if (!strcmp(argv[1], "serve")) {
    tickers = argc > 4 ? atoi(argv[4]) : 0;
    return serve(port, atoi(argv[3]));
  }
  if (!strcmp(argv[1], "ask")) return ask(port, atoi(argv[3]), atoi(argv[4]));
  if (!strcmp(argv[1], "slow")) return half(port, "ab");
  return half(port, "!!\n");
}
