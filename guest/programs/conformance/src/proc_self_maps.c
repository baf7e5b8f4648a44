// /proc/self/maps: code, heap, stack, files with offset, holes and protections are at the addresses known to the program.
#include "conformance.h"

enum { PAGE = 4096 };

// describe prints the permissions, and the offset and name of file mappings,
// that /proc/self/maps has for an address.
static void describe(const char *what, const void *p, bool file)
{
	FILE *f = fopen("/proc/self/maps", "r");
	CHECK(f != NULL);
	char line[4500], perm[5], name[4097];
	unsigned long low, high, offset, last = 0;
	const char *found = NULL;
	char text[5000];
	while (fgets(line, sizeof line, f)) {
		unsigned maj, min;
		unsigned long ino;
		name[0] = 0;
		CHECK(sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %4096[^\n]", &low, &high, perm, &offset, &maj, &min, &ino,
			     name) >= 7);
		CHECK(low < high && low >= last && low % PAGE == 0 && high % PAGE == 0);
		last = high;
		if ((uintptr_t)p < low || (uintptr_t)p >= high)
			continue;
		char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
		if (file)
			snprintf(text, sizeof text, "%s offset %lx %s", perm, offset, base);
		else
			snprintf(text, sizeof text, "%s %s", perm, name[0] == '[' ? name : "");
		found = text;
	}
	CHECK(fclose(f) == 0);
	printf("%s: %s\n", what, found ? found : "unmapped");
}

int main(void)
{
	int local;
	describe("stack", &local, false);
	void *heap = sbrk(8192);
	describe("heap", heap, false);
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	CHECK(mprotect(p + PAGE, PAGE, PROT_READ) == 0);
	CHECK(mprotect(p + 2 * PAGE, PAGE, PROT_NONE) == 0);
	CHECK(munmap(p + 3 * PAGE, PAGE) == 0);
	describe("anonymous", p, false);
	describe("read only", p + PAGE, false);
	describe("no access", p + 2 * PAGE, false);
	describe("unmapped", p + 3 * PAGE, false);

	write_file("a file", "contents");
	int fd = open("a file", O_RDWR);
	CHECK(fd >= 0 && ftruncate(fd, 4 * PAGE) == 0);
	char *f = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	char *g = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(f != MAP_FAILED && g != MAP_FAILED);
	describe("shared file", f, true);
	CHECK(mprotect(f + PAGE, PAGE, PROT_READ) == 0);
	describe("its second page", f + PAGE, true);
	describe("private file", g, true);
	CHECK(unlink("a file") == 0);
	describe("unlinked file", g, true);

	// The program's own code and constants: executable and read-only.
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4500], exe[4096] = {0};
	CHECK(maps != NULL && readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
	bool code = false, constant = false;
	while (fgets(line, sizeof line, maps)) {
		unsigned long low, high;
		char perm[5];
		CHECK(sscanf(line, "%lx-%lx %4s", &low, &high, perm) == 3);
		uintptr_t c = (uintptr_t)main, k = (uintptr_t)"constant";
		if (c >= low && c < high)
			code = strcmp(perm, "r-xp") == 0 && strstr(line, exe);
		if (k >= low && k < high)
			constant = strcmp(perm, "r--p") == 0 && strstr(line, exe);
	}
	CHECK(fclose(maps) == 0);
	printf("code %d, constants %d\n", code, constant);
	return 0;
}
