// A library whose functions load it.
#ifndef HEDDLE_DYNLIB_H
#define HEDDLE_DYNLIB_H

#include <stddef.h>

struct heddle_dynlib {
  const char *const *files;  // names for dlopen, the first to be found is loaded; then NULL
  const char *package;       // of Debian
  const char *const *names;  // of the functions
  void **functions;          // where a call of each goes: to the library from the second one on
  void *handle;              // NULL: not loaded yet
};

// Looks up the library's function number i, and loads the library before the first.
void *heddle_dynlib_bind(struct heddle_dynlib *lib, size_t i);

#endif
