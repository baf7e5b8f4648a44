// stdio on files: every fopen mode, positions, pushback, scanning, buffers, memory streams, temporary files, locking.
#include "conformance.h"

static FILE *open_as(const char *mode)
{
	FILE *f = fopen("file", mode);
	CHECK(f != NULL);
	return f;
}

static void contents(const char *what)
{
	char buf[200];
	CHECK(read_file("file", buf, sizeof buf) >= 0);
	printf("%s: \"%s\"\n", what, buf);
}

static FILE *common;

static void *line_writer(void *arg)
{
	for (int i = 0; i < 50; i++)
		fprintf(common, "%c%c%c%c\n", (int)(intptr_t)arg, (int)(intptr_t)arg, (int)(intptr_t)arg, (int)(intptr_t)arg);
	return NULL;
}

int main(void)
{
	SHOW(fopen("file", "r") == NULL ? -1 : 0);
	FILE *f = open_as("w");
	fprintf(f, "line %d\nline %d\n%x %5.2f %s\n", 1, 2, 0xbeef, 2.5, "end");
	CHECK(fclose(f) == 0);
	contents("w");
	f = open_as("a+");
	fputs("appended", f);
	rewind(f);
	char buf[100];
	CHECK(fgets(buf, sizeof buf, f) != NULL);
	printf("first %s", buf);
	fputs("+", f);
	CHECK(fclose(f) == 0);
	f = open_as("r+");
	CHECK(fseek(f, 5, SEEK_SET) == 0);
	fputc('X', f);
	CHECK(fseek(f, 0, SEEK_CUR) == 0);
	printf("next %d, at %ld\n", fgetc(f), ftell(f));
	CHECK(ungetc('U', f) == 'U' && fgetc(f) == 'U');
	CHECK(fseek(f, -1, SEEK_END) == 0);
	printf("last %c, eof %d\n", fgetc(f), feof(f));
	printf("then %d, eof %d\n", fgetc(f), feof(f) != 0);
	CHECK(fclose(f) == 0);
	contents("r+");
	f = open_as("r");
	SHOW(fputc('x', f) == EOF ? -1 : 0);
	int n, h;
	double d;
	clearerr(f);
	CHECK(fscanf(f, "line X\nline %d\n%x %lf", &n, &h, &d) == 3);
	printf("scanned %d %x %.2f\n", n, h, d);
	CHECK(fclose(f) == 0);
	SHOW(fopen("file", "wx") == NULL ? -1 : 0);

	// A full device is reported by the flush.
	f = fopen("/dev/full", "w");
	CHECK(f != NULL);
	SHOW(fprintf(f, "text"));
	SHOW(fflush(f));
	fclose(f);

	char *mem = NULL;
	size_t size = 0;
	f = open_memstream(&mem, &size);
	for (int i = 0; i < 1000; i++)
		fprintf(f, "%d,", i);
	CHECK(fclose(f) == 0);
	printf("memory stream %zu, %.10s\n", size, mem);
	free(mem);
	f = fmemopen("12 34", 5, "r");
	CHECK(fscanf(f, "%d %d", &n, &h) == 2);
	printf("from memory %d %d\n", n, h);
	CHECK(fclose(f) == 0);

	f = tmpfile();
	CHECK(f != NULL && fputs("temporary", f) >= 0);
	rewind(f);
	CHECK(fread(buf, 1, 9, f) == 9);
	printf("%.9s\n", buf);
	CHECK(fclose(f) == 0);
	char name[] = "tempXXXXXX", dir[] = "dirXXXXXX";
	int fd = mkstemp(name);
	CHECK(fd >= 0 && strcmp(name, "tempXXXXXX") != 0 && mkdtemp(dir) != NULL);
	struct stat st;
	CHECK(fstat(fd, &st) == 0 && stat(dir, &st) == 0);
	printf("mode of the folder %o\n", st.st_mode & 0777);

	// Lines of several threads are never mixed.
	common = open_as("w");
	setvbuf(common, NULL, _IOFBF, 64);
	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(line_writer, (void *)(intptr_t)('a' + i));
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	CHECK(fclose(common) == 0);
	f = open_as("r");
	int lines = 0;
	while (fgets(buf, sizeof buf, f)) {
		CHECK(strlen(buf) == 5 && buf[0] == buf[1] && buf[1] == buf[2] && buf[2] == buf[3]);
		lines++;
	}
	printf("lines %d\n", lines);
	CHECK(freopen("/dev/null", "r", f) == f);
	printf("null %d\n", fgetc(f));
	return 0;
}
