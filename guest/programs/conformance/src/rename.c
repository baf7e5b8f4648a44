// rename and renameat2: over files and directories, into oneself, over open files, NOREPLACE, EXCHANGE.
#include "conformance.h"

static void text(const char *path)
{
	char buf[100];
	if (read_file(path, buf, sizeof buf) < 0)
		printf("%s: %s\n", path, errname(errno));
	else
		printf("%s: %s\n", path, buf);
}

int main(void)
{
	write_file("a", "A");
	write_file("b", "B");
	SHOW(rename("a", "c"));
	text("a");
	text("c");
	int old = open("b", O_RDONLY);
	SHOW(rename("c", "b"));
	text("b");
	char x;
	CHECK(read(old, &x, 1) == 1);
	struct stat st;
	CHECK(fstat(old, &st) == 0);
	printf("the replaced file lives on: %c, links %ld\n", x, (long)st.st_nlink);

	CHECK(link("b", "hard") == 0);
	SHOW(rename("b", "hard")); // the same file: nothing happens
	text("b");
	text("hard");
	SHOW(rename("b", "b"));

	CHECK(mkdir("d", 0755) == 0 && mkdir("e", 0755) == 0 && mkdir("e/sub", 0755) == 0);
	SHOW(rename("d", "e"));
	SHOW(rename("e/sub", "d"));
	SHOW(rename("d", "e/moved"));
	SHOW(rename("e", "e/moved/x"));
	SHOW(rename("e", "e"));
	SHOW(rename("b", "e"));
	SHOW(rename("e", "b"));
	SHOW(rename("missing", "x"));
	SHOW(rename("b", "missing/x"));
	SHOW(rename("b", "b/x"));
	SHOW(rename("b/", "x"));
	SHOW(rename("e", "f/"));
	SHOW(rename("f/.", "g"));
	SHOW(rename("f", ".."));
	SHOW(rename("", "x"));
	SHOW(rename("b", ""));
	CHECK(symlink("nowhere", "l") == 0);
	SHOW(rename("l", "m"));
	SHOW(readlink("m", &x, 1));

	write_file("one", "1");
	write_file("two", "2");
	SHOW(renameat2(AT_FDCWD, "one", AT_FDCWD, "two", RENAME_NOREPLACE));
	SHOW(renameat2(AT_FDCWD, "one", AT_FDCWD, "three", RENAME_NOREPLACE));
	SHOW(renameat2(AT_FDCWD, "three", AT_FDCWD, "two", RENAME_EXCHANGE));
	text("three");
	text("two");
	SHOW(renameat2(AT_FDCWD, "three", AT_FDCWD, "f", RENAME_EXCHANGE));
	CHECK(stat("three", &st) == 0);
	printf("three is a directory: %d\n", S_ISDIR(st.st_mode));
	text("f");
	SHOW(renameat2(AT_FDCWD, "three", AT_FDCWD, "none", RENAME_EXCHANGE));
	SHOW(renameat2(AT_FDCWD, "f", AT_FDCWD, "two", RENAME_EXCHANGE | RENAME_NOREPLACE));
	SHOW(renameat2(AT_FDCWD, "f", AT_FDCWD, "two", 0x7000));
	return 0;
}
