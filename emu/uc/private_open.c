#include "cpu.h"
#include "private.h"

#include <stdlib.h>

static size_t all_pages(const struct heddle_ram *ram) { return ram->pages; }

// Starts to give cores private pages. Nothing may have run yet.
int heddle_private_open(struct heddle_cpu *cpu) {
  if (cpu->engine.has_run || cpu->private_pages || cpu->buffers || cpu->logs.memory.on) return UC_ERR_ARG;
  struct heddle_private_pages *p = calloc(1, sizeof *p);
  if (!p) return UC_ERR_NOMEM;
  *p = (struct heddle_private_pages){.cpu = cpu, .ram = cpu->ram, .ncores = cpu->cores, .running_core = HEDDLE_NO_CORE,
                                     .ncopies = 1, .room = 64};
  p->last_thread = UINT64_MAX;
  p->state = heddle_reserve(all_pages(cpu->ram) * sizeof *p->state);
  p->first_copy = heddle_reserve(all_pages(cpu->ram) * sizeof *p->first_copy);
  p->copies = malloc(p->room * sizeof *p->copies);
  p->cores = calloc(p->ncores, sizeof *p->cores);
  cpu->private_pages = p;
  if (!p->state || !p->first_copy || !p->copies || !p->cores) return UC_ERR_NOMEM;
  cpu->ram->observer = &heddle_private_observer;
  cpu->ram->observed_by = p;
  return 0;
}

void heddle_private_close(struct heddle_cpu *cpu) {
  struct heddle_private_pages *p = cpu->private_pages;
  if (!p) return;
  heddle_unreserve(p->state, all_pages(p->ram) * sizeof *p->state);
  heddle_unreserve(p->first_copy, all_pages(p->ram) * sizeof *p->first_copy);
  for (uint32_t i = 0; p->cores && i < p->ncores; i++) free(p->cores[i].copies);
  free(p->cores);
  free(p->copies);
  free(p);
  cpu->private_pages = NULL;
  if (cpu->ram->observed_by == p) cpu->ram->observer = NULL;
}
