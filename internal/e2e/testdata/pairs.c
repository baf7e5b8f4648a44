// Three threads write pairs of lines, in order: argv[1] pairs to standard output and
// to the file argv[2], each pair in one epoch of Frost.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n, most, file;

static void *work(void *unused) {
  for (;;) {
    pthread_mutex_lock(&m);
    int i = n++;
    if (i < most) {
      // Nothing but the calls is between the lines: an epoch may end at the second one.
      char begin[32], end[32];
      int begins = sprintf(begin, "begin %d\n", i), ends = sprintf(end, "end %d\n", i);
      if (write(1, begin, begins) != begins || write(1, end, ends) != ends) exit(1);
      dprintf(file, "%d\n", i);
      // Longer than the first epochs continue after output.
      for (volatile int k = 0; k < 75000; k++) {
      }
    }
    pthread_mutex_unlock(&m);
    if (i >= most) return unused;
  }
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  most = atoi(argv[1]);
  file = open(argv[2], O_CREAT | O_WRONLY | O_TRUNC, 0666);
  pthread_t t[3];
  for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, work, 0);
  for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
  return 0;
}
