// Reads a file in blocks, and asks for its size in three ways.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
  char block[1024];
  struct stat s, t;
  if (argc != 2 || stat(argv[1], &s)) return 1;
  int f = open(argv[1], O_RDONLY), blocks = 0;
  if (f < 0 || fstat(f, &t)) return 1;
  if (s.st_size > 5000) return 2;
  while (read(f, block, sizeof block) > 0) blocks++;
  long end = lseek(f, 0, SEEK_END);
  if (end < 10) return 3;
  printf("%ld %d %ld %ld\n", (long)s.st_size, blocks, (long)t.st_size, end);
  return 0;
}
