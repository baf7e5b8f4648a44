#include "cpu.h"
#include "views.h"

#include <stdlib.h>

static size_t all_pages(const struct heddle_ram *ram) { return ram->pages; }

// Begins to keep the stores of cores apart. Nothing may have run yet.
int heddle_views_open(struct heddle_cpu *cpu) {
  if (cpu->ran || cpu->views || cpu->buffers || cpu->memory.on) return UC_ERR_ARG;
  struct heddle_views *v = calloc(1, sizeof *v);
  if (!v) return UC_ERR_NOMEM;
  *v = (struct heddle_views){.cpu = cpu, .ram = cpu->ram, .ncores = cpu->cores, .running = HEDDLE_NO_CORE, .nholds = 1, .room = 64};
  v->last = UINT64_MAX;
  v->state = heddle_reserve(all_pages(cpu->ram) * sizeof *v->state);
  v->held = heddle_reserve(all_pages(cpu->ram) * sizeof *v->held);
  v->holds = malloc(v->room * sizeof *v->holds);
  v->cores = calloc(v->ncores, sizeof *v->cores);
  cpu->views = v;
  if (!v->state || !v->held || !v->holds || !v->cores) return UC_ERR_NOMEM;
  cpu->ram->observer = &heddle_views_observer;
  cpu->ram->observed_by = v;
  return 0;
}

void heddle_views_close(struct heddle_cpu *cpu) {
  struct heddle_views *v = cpu->views;
  if (!v) return;
  heddle_unreserve(v->state, all_pages(v->ram) * sizeof *v->state);
  heddle_unreserve(v->held, all_pages(v->ram) * sizeof *v->held);
  for (uint32_t i = 0; v->cores && i < v->ncores; i++) free(v->cores[i].holds);
  free(v->cores);
  free(v->holds);
  free(v);
  cpu->views = NULL;
  if (cpu->ram->observed_by == v) cpu->ram->observer = NULL;
}
