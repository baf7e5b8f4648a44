// A program that works, to be damaged.
#include <stdio.h>

int main(void) {
	puts("hello");
	return 0;
}
