// The log of stores in translated code. A block has a fixed place after CONTEXT_STORES for each
// store, and an exit advances CONTEXT_STORES by what the instructions before it have stored. Nothing
// here changes flags.
#include "translate.h"

static struct place logged(const struct translation *t, unsigned i, size_t field) {
  return at_register(t->scratch, (int32_t)(t->stores_before[i] * sizeof(struct direct_logged_store) + field));
}

#define FIELD(name) offsetof(struct direct_logged_store, name)

// Logs the store of instruction i to m, which is relative to the pointer register.
void put_stored(struct translation *t, unsigned i, struct place m, unsigned size) {
  struct code *c = &t->c;
  bool weak = t->insns[i].order & HEDDLE_ORDER_WEAK;
  if (!t->e->buffers) return;
  put_load(c, t->scratch, in_context(CONTEXT_STORES));
  put_store(c, t->pointer, logged(t, i, FIELD(pointer)));
  put_imm_to_memory(c, 4, logged(t, i, FIELD(what)),
                    (int32_t)((uint32_t)m.disp | size << LOGGED_SIZE_SHIFT | (weak ? LOGGED_WEAK : 0)));
  for (unsigned k = 0; k < size; k += 8) {
    if (k) put_load(c, t->pointer, logged(t, i, FIELD(pointer)));
    struct place from = m;
    from.disp += (int32_t)k;
    put_load(c, t->pointer, from);
    put_store(c, t->pointer, logged(t, i, FIELD(old) + k));
  }
  put_load(c, t->pointer, logged(t, i, FIELD(pointer)));
}

// The block is left after instruction i.
void put_stores_exit(struct translation *t, unsigned i) {
  unsigned n = t->stores_before[i] + direct_is_logged_store(&t->insns[i]);
  if (!t->e->buffers || !n) return;
  put_load(&t->c, t->scratch, in_context(CONTEXT_STORES));
  put_op_memory(&t->c, 8, OP_LEA, t->scratch, at_register(t->scratch, (int32_t)(n * sizeof(struct direct_logged_store))));
  put_store(&t->c, t->scratch, in_context(CONTEXT_STORES));
}

void count_stores(struct translation *t) {
  for (unsigned i = 0, n = 0; i < t->n; n += direct_is_logged_store(&t->insns[i++])) t->stores_before[i] = (uint8_t)n;
}
