// The entries in the log of memory of instructions between whose accesses other cores run.
#ifndef HEDDLE_INSIDELOG_H
#define HEDDLE_INSIDELOG_H

#include "core.h"
#include "inside.h"

void heddle_inside_log_pages(struct heddle_mem_core *log, const struct heddle_space *space, const struct heddle_inside *in);
void heddle_inside_log_pieces(struct heddle_mem_core *log, const struct heddle_space *space, const struct heddle_inside *in,
                              uint32_t from, uint32_t upto);

#endif
