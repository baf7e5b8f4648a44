// Only the assembly files for x86-64 define functions of libraries.
#ifdef __x86_64__
#include "dynlib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// The exit status of heddle's own failures.
#define STATUS_FAILURE 125

#define DEFINE_LIBRARY(symbol, debian, ...)                              \
  extern const char *const symbol##_names[];                             \
  extern void *symbol##_functions[];                                     \
  static const char *const symbol##_files[] = {__VA_ARGS__, NULL};       \
  struct heddle_dynlib symbol = {symbol##_files, debian, symbol##_names, symbol##_functions, NULL}

// The names with which the versions that were tested are installed come first.
DEFINE_LIBRARY(heddle_z3, "libz3-4", "libz3.so.4", "libz3.so");
DEFINE_LIBRARY(heddle_unicorn, "libunicorn2 or libunicorn2t64", "libunicorn.so.2", "libunicorn.so");

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

_Noreturn static void end_missing(const struct heddle_dynlib *lib, const char *reason) {
  fprintf(stderr, "heddle: cannot load the library %s, of Debian's package %s: %s\n", lib->files[0], lib->package, reason);
  _Exit(STATUS_FAILURE);
}

// Opens the library, or returns NULL with the reason.
static void *try_library(const struct heddle_dynlib *lib, char *reason, size_t size) {
  for (size_t i = 0; lib->files[i]; i++) {
    void *handle = dlopen(lib->files[i], RTLD_LAZY | RTLD_LOCAL);
    if (handle) return handle;
    if (i == 0) snprintf(reason, size, "%s", dlerror());
  }
  return NULL;
}

static void *open_library(const struct heddle_dynlib *lib) {
  char reason[256];
  void *handle = try_library(lib, reason, sizeof reason);
  if (!handle) end_missing(lib, reason);
  return handle;
}

static int can_open(const struct heddle_dynlib *lib) {
  char reason[256];
  return try_library(lib, reason, sizeof reason) != NULL;
}

int heddle_has_z3(void) { return can_open(&heddle_z3); }
int heddle_has_unicorn(void) { return can_open(&heddle_unicorn); }

void *heddle_dynlib_bind(struct heddle_dynlib *lib, size_t i) {
  pthread_mutex_lock(&loading);
  if (!lib->handle) lib->handle = open_library(lib);
  void *function = dlsym(lib->handle, lib->names[i]);
  if (!function) end_missing(lib, dlerror());
  __atomic_store_n(&lib->functions[i], function, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&loading);
  return function;
}
#else
// Linked as usual.
int heddle_has_z3(void) { return 1; }
int heddle_has_unicorn(void) { return 1; }
#endif
