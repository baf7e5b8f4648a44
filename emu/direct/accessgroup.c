// Accesses of a block that share a check.
#include "translate.h"

static bool is_plain(const struct direct_operand *m) {
  return m->base != NO_REGISTER && m->index == NO_REGISTER && !m->segment && !m->narrow && m->disp == (int32_t)m->disp;
}

// ADD or SUB of a constant to the register. False: it is something else.
static bool adds_constant(const struct direct_insn *in, unsigned base, int32_t *by) {
  unsigned extension = in->modrm >> 3 & 7;
  bool group = !in->vex && !in->opcode_map && (in->opcode == 0x81 || in->opcode == 0x83) && in->width == 8;
  if (in->class != CLASS_NATIVE || !group || !insn_is_register(in) || insn_rm(in) != base) return false;
  if (extension != 0 && extension != 5) return false;
  *by = (int32_t)(extension ? -in->imm : in->imm);
  return true;
}

// Reports how far the instruction moves the group's register. False: to somewhere unknown.
static bool find_move(const struct direct_insn *in, unsigned base, int32_t *by) {
  *by = 0;
  if (!(in->writes & REGISTER_BIT(base))) return true;
  if (base == RSP && (in->class == CLASS_PUSH || in->class == CLASS_CALL)) *by = -8;
  else if (base == RSP && in->class == CLASS_POP) *by = 8;
  else return adds_constant(in, base, by);
  return true;
}

// An access relative to the group's register.
struct reach {
  int32_t at, size;
  bool write;
};

enum kind_of_access { ACCESS_NONE, ACCESS_IN_GROUP, ACCESS_ELSEWHERE };

static enum kind_of_access find_access(const struct direct_insn *in, unsigned base, struct reach *r) {
  switch ((enum direct_class)in->class) {
    case CLASS_NATIVE:
      if (in->what & INSN_FLAGS_BY_COUNT) return ACCESS_ELSEWHERE;  // it may use the pointer register
      if (!(in->what & INSN_MEMORY)) return ACCESS_NONE;
      if (!is_plain(&in->memory) || in->memory.base != base) return ACCESS_ELSEWHERE;
      *r = (struct reach){(int32_t)in->memory.disp, in->size, in->what & INSN_STORES};
      return ACCESS_IN_GROUP;
    case CLASS_PUSH:
    case CLASS_CALL:
      *r = (struct reach){-8, 8, true};
      return base == RSP ? ACCESS_IN_GROUP : ACCESS_ELSEWHERE;
    case CLASS_POP:
    case CLASS_RETURN:
      *r = (struct reach){0, 8, false};
      return base == RSP ? ACCESS_IN_GROUP : ACCESS_ELSEWHERE;
    case CLASS_NOTHING:
    case CLASS_PAUSE:
    case CLASS_JUMP:
    case CLASS_JUMP_IF:
      return ACCESS_NONE;
    default:
      return ACCESS_ELSEWHERE;
  }
}

// Makes the group, of the access of instruction i, contain those after it that can use its check.
void extend_group(const struct translation *t, unsigned i, struct group *g) {
  int32_t moved = 0, by;
  if (t->block->apart || !find_move(&t->insns[i], g->base, &by)) return;
  moved += by;
  for (unsigned j = i + 1; j < t->n; j++) {
    const struct direct_insn *in = &t->insns[j];
    struct reach r;
    enum kind_of_access kind = find_access(in, g->base, &r);
    if (kind == ACCESS_ELSEWHERE) return;
    if (kind == ACCESS_IN_GROUP) {
      int64_t low = (int64_t)r.at + moved, high = low + r.size;
      if (low > g->low) low = g->low;
      if (high < g->high) high = g->high;
      if ((r.write && !g->write) || high - low > GROUP_BYTES || low < INT32_MIN || high > INT32_MAX) return;
      g->low = (int32_t)low;
      g->high = (int32_t)high;
    }
    if (!find_move(in, g->base, &by) || by > GROUP_BYTES || by < -GROUP_BYTES) return;
    moved += by;
  }
}

// The group's register has been moved by instruction i, if at all.
void move_group(struct translation *t, unsigned i) {
  struct group *g = &t->group;
  int32_t by;
  if (!g->valid) return;
  if (!find_move(&t->insns[i], g->base, &by) || by > GROUP_BYTES || by < -GROUP_BYTES) {
    g->valid = false;
    return;
  }
  g->low -= by;
  g->high -= by;
}
