// The dynamic loader at run time: dlsym of functions and data, dladdr, dl_iterate_phdr, dlinfo, errors, many threads that open and close.
// link: -ldl -rdynamic
// static: no (dlopen)
// plugin: yes
#include "conformance.h"

#include <dlfcn.h>
#include <link.h>

#ifdef PLUGIN

int plugin_value = 42;
int plugin_add(int a, int b) { return a + b; }
const char *host_name(void);
const char *plugin_asks_host(void) { return host_name(); }

#else

const char *host_name(void) { return "the program"; }

static atomic_int opened;

static void *opener(void *arg)
{
	for (int i = 0; i < 15; i++) {
		void *lib = dlopen("./plugin.so", i % 2 ? RTLD_NOW : RTLD_LAZY);
		CHECK(lib != NULL);
		int (*add)(int, int) = (int (*)(int, int))dlsym(lib, "plugin_add");
		CHECK(add != NULL && add(i, 2) == i + 2);
		opened++;
		CHECK(dlclose(lib) == 0);
	}
	return arg;
}

static int objects, with_tls, named;

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	CHECK(size >= sizeof *info && data == &objects);
	objects++;
	for (int i = 0; i < info->dlpi_phnum; i++)
		with_tls += info->dlpi_phdr[i].p_type == PT_TLS;
	named += strstr(info->dlpi_name, "plugin.so") != NULL;
	return 0;
}

int main(void)
{
	printf("%d\n", dlopen("./missing.so", RTLD_NOW) == NULL);
	printf("%s\n", strstr(dlerror(), "missing.so") ? "the error names it" : "?");
	printf("no second error: %d\n", dlerror() == NULL);
	write_file("text.so", "this is no library, although it is long enough to hold a header of one");
	printf("%d\n", dlopen("./text.so", RTLD_NOW) == NULL);
	printf("%s\n", strstr(dlerror(), "invalid ELF header") ? "invalid ELF header" : "?");
	void *lib = dlopen("./plugin.so", RTLD_NOW);
	if (lib == NULL)
		printf("%s\n", dlerror());
	CHECK(lib != NULL);
	int *value = dlsym(lib, "plugin_value");
	CHECK(value != NULL);
	printf("value %d\n", *value);
	const char *(*ask)(void) = (const char *(*)(void))dlsym(lib, "plugin_asks_host");
	printf("the plugin calls %s\n", ask());
	printf("missing symbol: %d\n", dlsym(lib, "no_such_symbol") == NULL && dlerror() != NULL);
	printf("not global: %d\n", dlsym(RTLD_DEFAULT, "plugin_value") == NULL);
	CHECK(dlopen("./plugin.so", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) == lib);
	printf("global now: %d\n", dlsym(RTLD_DEFAULT, "plugin_value") == value);
	printf("next printf is the C library's: %d\n", dlsym(RTLD_NEXT, "puts") == dlsym(RTLD_DEFAULT, "puts"));
	void *self = dlopen(NULL, RTLD_NOW);
	printf("own symbol: %d\n", dlsym(self, "host_name") == (void *)host_name);

	Dl_info info;
	CHECK(dladdr((void *)ask, &info) != 0);
	printf("%s in %s\n", info.dli_sname, strrchr(info.dli_fname, '/') + 1);
	printf("nowhere: %d\n", dladdr((void *)16, &info));
	struct link_map *map;
	CHECK(dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0);
	printf("%s\n", strrchr(map->l_name, '/') + 1);
	CHECK(dl_iterate_phdr(visit, &objects) == 0);
	printf("objects %d, plugin %d, TLS somewhere %d\n", objects >= 3, named, with_tls > 0);
	printf("close %d %d\n", dlclose(lib), dlclose(lib));

	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(opener, NULL);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("opened %d\n", opened);
	return 0;
}

#endif
