// The arithmetic flags in a block's code.
//
// Checks of accesses use the host's flags. The guest's are exact wherever a block can be left, but
// are not stored for that: mostly the operands of the last instruction that set them are still in
// registers, or one is kept in memory when its register is overwritten, and the point or the exit
// says by which formula the flags follow. Where there is no formula, LAHF and SETO store them.
#include "translate.h"

// ---- what instructions do with them ------------------------------------------------------

static unsigned changed_flags(const struct direct_insn *in) { return in->flags_set | in->flags_undefined; }

static bool sets_all(const struct direct_insn *in) {
  return changed_flags(in) == FLAGS_ARITHMETIC && !(in->what & INSN_FLAGS_BY_COUNT);
}

// Reports whether the instruction computes with flags. A shift or rotation by CL only leaves those before it if CL is 0.
static bool computes_with_flags(const struct direct_insn *in) {
  bool through = in->mnemonic == ZYDIS_MNEMONIC_RCL || in->mnemonic == ZYDIS_MNEMONIC_RCR;
  return in->flags_read && (!(in->what & INSN_FLAGS_BY_COUNT) || through);
}

// Reports whether the block can be left before the instruction, or needs the host's flags for it.
static bool is_visible(const struct direct_insn *in) {
  if (in->class == CLASS_NOTHING || in->class == CLASS_PAUSE || in->class == CLASS_JUMP) return false;
  if (in->class != CLASS_NATIVE) return true;
  return (in->what & (INSN_MEMORY | INSN_FLOAT)) || in->mnemonic == ZYDIS_MNEMONIC_DIV || in->mnemonic == ZYDIS_MNEMONIC_IDIV;
}

// Reports whether the flags before instruction i matter to anything.
static bool matter_from(const struct translation *t, unsigned i) {
  for (unsigned j = i; j < t->n; j++) {
    const struct direct_insn *in = &t->insns[j];
    if (is_visible(in) || computes_with_flags(in)) return true;
    if (sets_all(in)) return false;
  }
  return true;
}

// Reports whether the flags that instruction i leaves do.
static bool matter_after(const struct translation *t, unsigned i) { return matter_from(t, i + 1); }

static bool is_shift(const struct direct_insn *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_SHL || in->mnemonic == ZYDIS_MNEMONIC_SHR || in->mnemonic == ZYDIS_MNEMONIC_SAR;
}

// Reports whether the flags after a shift of a register by CL can be left where they are between blocks, by
// their formula or as they are there already if the count is 0: nothing in the block needs them in the host's.
static bool is_left_in_context(const struct translation *t, unsigned i) {
  const struct direct_insn *in = &t->insns[i];
  if (!(in->what & INSN_FLAGS_BY_COUNT) || !is_shift(in) || !insn_is_register(in) || (in->what & INSN_HIGH_BYTE)) return false;
  for (unsigned j = i + 1; j < t->n; j++) {
    const struct direct_insn *next = &t->insns[j];
    if (computes_with_flags(next)) return false;
    if (sets_all(next)) return true;
    if (next->what & INSN_FLAGS_BY_COUNT) return is_left_in_context(t, j);
    if (changed_flags(next)) return false;
  }
  return true;
}

// Reports whether instruction i needs the flags from before it in the host's.
static bool needs_flags(const struct translation *t, unsigned i) {
  const struct direct_insn *in = &t->insns[i];
  if (computes_with_flags(in)) return true;
  return changed_flags(in) && !sets_all(in) && matter_after(t, i) && !is_left_in_context(t, i);
}

// Reports whether the block needs the flags from before it in the host's.
bool flags_are_needed(const struct translation *t) {
  for (unsigned i = 0; i < t->n; i++) {
    if (needs_flags(t, i)) return true;
    if (sets_all(&t->insns[i])) return false;
  }
  return false;
}

// Reports whether the block sets all flags before it can be left, and does not use those from before it.
bool flags_are_ignored(const struct translation *t) {
  return !t->block->is_short && !matter_from(t, 0);
}

// ---- storing and loading -------------------------------------------------------------------

// The flags as SAVED_FLAGS has them.
static uint32_t saved_form(unsigned flags) { return (flags & 0xd5u) << 8 | (flags & FLAG_OF ? 1u : 0u); }

static void begin_save(struct translation *t) {
  put_move(&t->c, t->scratch, RAX);
  put8(&t->c, 0x9f);  // LAHF
  put_set_overflow(&t->c);
}

static void end_save(struct translation *t) {
  put_op_memory(&t->c, 4, OP_STORE, RAX, in_context(CONTEXT_SAVED_FLAGS));
  put_move(&t->c, RAX, t->scratch);
  t->flags = (struct direct_flags){.formula = FORMULA_SAVED};
}

// Stores the host's flags.
static void put_save(struct translation *t) {
  unsigned undefined = t->flags.undefined;
  begin_save(t);
  if (undefined) put_op_imm(&t->c, 4, 4, RAX, (int32_t)~saved_form(undefined));
  end_save(t);
  if (undefined) t->in_host = false;
}

static void put_restore(struct translation *t) {
  put_move(&t->c, t->scratch, RAX);
  put_op_memory(&t->c, 4, OP_LOAD, RAX, in_context(CONTEXT_SAVED_FLAGS));
  put_op_imm(&t->c, 1, 0, RAX, 0x7f);  // OF from AL
  put8(&t->c, 0x9e);                   // SAHF
  put_move(&t->c, RAX, t->scratch);
  t->in_host = true;
}

// ---- formulas ------------------------------------------------------------------------------

static void put_operation(struct translation *t, unsigned opcode, unsigned reg, bool second) {
  const struct direct_flags *f = &t->flags;
  unsigned from = second ? f->second : f->first;
  static const uint8_t extensions[] = {[OP_ADD >> 3] = 0, [OP_SUB >> 3] = 5, [OP_CMP >> 3] = 7};
  if (from == OPERAND_KEPT)
    put_op_memory(&t->c, f->width, opcode, reg, in_context(second ? CONTEXT_SECOND : CONTEXT_FIRST));
  else if (from == OPERAND_CONSTANT && opcode == OP_TEST)
    put_test_imm(&t->c, f->width, reg, f->constant);
  else if (from == OPERAND_CONSTANT)
    put_op_imm(&t->c, f->width, extensions[opcode >> 3], reg, f->constant);
  else
    put_op_register(&t->c, f->width, opcode, reg, from);
}

// A register that has the formula's first value.
static unsigned put_first(struct translation *t, bool changed) {
  const struct direct_flags *f = &t->flags;
  if (f->first < OPERAND_KEPT && !changed) return f->first;
  if (f->first < OPERAND_KEPT) put_move(&t->c, t->scratch, f->first);
  else if (f->first == OPERAND_CONSTANT) put_constant(&t->c, t->scratch, (uint64_t)(int64_t)f->constant);
  else put_load(&t->c, t->scratch, in_context(CONTEXT_FIRST));
  return t->scratch;
}

// Computes the flags again in the host's.
static void put_formula(struct translation *t) {
  struct direct_flags *f = &t->flags;
  unsigned r;
  t->in_host = true;
  switch ((enum direct_formula)f->formula) {
    case FORMULA_ADD:
      r = put_first(t, true);
      put_operation(t, OP_SUB, r, true);
      put_operation(t, OP_ADD, r, true);
      return;
    case FORMULA_SUBTRACT:
      r = put_first(t, true);
      put_operation(t, OP_ADD, r, true);
      put_operation(t, OP_SUB, r, true);
      return;
    case FORMULA_COMPARE:
      put_operation(t, OP_CMP, put_first(t, false), true);
      return;
    case FORMULA_TEST:
      put_operation(t, OP_TEST, put_first(t, false), true);
      return;
    case FORMULA_LOGIC:
      r = put_first(t, false);
      put_op_register(&t->c, f->width, OP_TEST, r, r);
      return;
    case FORMULA_NEGATE:
      r = put_first(t, true);
      put_unary(&t->c, f->width, 3, r);
      put_unary(&t->c, f->width, 3, r);
      return;
    case FORMULA_EQUAL:
      put_op_register(&t->c, 4, OP_CMP, t->scratch, t->scratch);
      return;
    default:
      r = put_first(t, true);
      put_shift(&t->c, f->width, f->formula == FORMULA_LEFT ? 4 : f->formula == FORMULA_RIGHT ? 5 : 7, r, (unsigned)f->constant);
  }
}

static void put_into_host(struct translation *t) {
  if (t->in_host) return;
  if (t->flags.formula == FORMULA_SAVED || t->flags.formula == FORMULA_ENTRY) put_restore(t);
  else put_formula(t);
}

static bool has_formula(const struct translation *t) {
  return t->flags.formula != FORMULA_SAVED && t->flags.formula < FORMULA_ENTRY;
}

// Keeps the values of formulas, and the count, that are in the register.
static void keep_register(struct translation *t, unsigned r) {
  bool formula = has_formula(t);
  if (formula && t->flags.first == r) {
    put_store(&t->c, r, in_context(CONTEXT_FIRST));
    t->flags.first = OPERAND_KEPT;
  }
  if (formula && t->flags.second == r) {
    put_store(&t->c, r, in_context(CONTEXT_SECOND));
    t->flags.second = OPERAND_KEPT;
  }
  if (t->flags.shift && t->flags.count == r) {
    put_store(&t->c, r, in_context(CONTEXT_COUNT));
    t->flags.count = OPERAND_KEPT;
  }
}

// ZF is known to be set.
void note_equal(struct direct_flags *f) {
  switch ((enum direct_formula)f->formula) {
    case FORMULA_SUBTRACT:
    case FORMULA_COMPARE:
    case FORMULA_LOGIC:
    case FORMULA_TEST:
    case FORMULA_NEGATE:
      *f = (struct direct_flags){.formula = FORMULA_EQUAL, .width = f->width, .first = OPERAND_KEPT, .second = OPERAND_KEPT};
      return;
    default:
      return;
  }
}

// Reports whether put_flags has something to do; by instructions that only store, once the host's flags have been put aside.
bool stores_flags(const struct translation *t) { return t->flags.formula != FORMULA_ENTRY; }

// Puts the flags where they are between blocks, but for a shift by a count.
void put_flags(struct translation *t) {
  struct direct_flags *f = &t->flags;
  if (f->formula == FORMULA_ENTRY) return;
  if (f->formula == FORMULA_HOST) put_save(t);
  if (has_formula(t)) {
    for (unsigned r = 0; r < 16; r++) keep_register(t, r);
    if (f->first == OPERAND_CONSTANT) put_imm_to_memory(&t->c, 8, in_context(CONTEXT_FIRST), f->constant);
  }
  uint32_t formula = f->formula | (unsigned)f->width << 8;
  if (has_formula(t) && f->second == OPERAND_CONSTANT) {
    bool small = f->constant == (int16_t)f->constant;
    if (small) formula |= FORMULA_CONSTANT | (uint32_t)f->constant << 16;
    else put_imm_to_memory(&t->c, 8, in_context(CONTEXT_SECOND), f->constant);
  }
  put_imm_to_memory(&t->c, 4, in_context(CONTEXT_FORMULA), (int32_t)formula);
}

// Has the flags between blocks be those of the shift by a count, if there is one.
void put_shift_flags(struct translation *t) {
  struct code *c = &t->c;
  struct direct_flags f = t->flags;
  if (!f.shift) return;
  t->flags.shift = 0;
  put_flags(t);
  if (f.count == OPERAND_KEPT) put_op_memory(c, 4, OP_LOAD, t->scratch, in_context(CONTEXT_COUNT));
  else put_op_register(c, 4, OP_LOAD, t->scratch, f.count);
  put_op_imm(c, 4, 4, t->scratch, (int32_t)direct_count_mask(f.shift_width));
  uint8_t *none = put_jump_if(c, CC_Z);
  put_store(c, t->scratch, in_context(CONTEXT_SECOND));
  put_load(c, t->scratch, in_context(CONTEXT_SHIFTED));
  put_store(c, t->scratch, in_context(CONTEXT_FIRST));
  put_imm_to_memory(c, 4, in_context(CONTEXT_FORMULA), (int32_t)(f.shift | (unsigned)f.shift_width << 8));
  patch_jump(none, c->at);
  t->flags = (struct direct_flags){.formula = FORMULA_ENTRY, .first = OPERAND_KEPT, .second = OPERAND_KEPT};
  t->in_host = false;
}

// Puts the flags where they are between blocks.
void put_exit_flags(struct translation *t) {
  put_shift_flags(t);
  put_flags(t);
}

// ---- before and after instructions -----------------------------------------------------------

// The host's flags are about to be used for something else where the block can be left.
void put_flags_aside(struct translation *t) {
  if (t->flags.formula == FORMULA_HOST) put_save(t);
  t->in_host = false;
}

static bool shifts_by_constant(const struct direct_insn *in) {
  return is_shift(in) && insn_is_register(in) && sets_all(in) && !(in->what & INSN_HIGH_BYTE);
}

static unsigned formula_of_shift(const struct direct_insn *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_SHL ? FORMULA_LEFT : in->mnemonic == ZYDIS_MNEMONIC_SHR ? FORMULA_RIGHT : FORMULA_ARITHMETIC_RIGHT;
}

// The flags are those of the shift of a register by CL from now on, unless that is 0: the host's are whatever they are.
static void note_shift(struct translation *t, const struct direct_insn *in) {
  put_shift_flags(t);
  put_flags_aside(t);
  for (unsigned r = 0; r < 16; r++)
    if (in->writes & REGISTER_BIT(r)) keep_register(t, r);
  put_store(&t->c, insn_rm(in), in_context(CONTEXT_SHIFTED));
  t->flags.shift = (uint8_t)formula_of_shift(in);
  t->flags.shift_width = in->width;
  t->flags.count = RCX;
}

// Puts the flags, as instruction i needs them, into the host's; keeps values that it overwrites.
void put_flags_before(struct translation *t, unsigned i) {
  const struct direct_insn *in = &t->insns[i];
  if (is_left_in_context(t, i) && matter_after(t, i)) {
    note_shift(t, in);
    return;
  }
  if (needs_flags(t, i)) {
    put_into_host(t);
    unsigned must = in->what & INSN_FLAGS_BY_COUNT ? FLAGS_ARITHMETIC : in->flags_read;
    if (t->flags.undefined & must) {
      put_save(t);
      put_restore(t);
    }
  }
  if (!changed_flags(in) && matter_after(t, i))
    for (unsigned r = 0; r < 16; r++)
      if (in->writes & REGISTER_BIT(r)) keep_register(t, r);
  if (shifts_by_constant(in) && matter_after(t, i)) put_store(&t->c, insn_rm(in), in_context(CONTEXT_FIRST));
}

// Flags after a shift by CL are undefined by the count.
static void put_define_by_count(struct translation *t, const struct direct_insn *in) {
  struct code *c = &t->c;
  t->group.valid = false;
  begin_save(t);
  put_move(c, t->pointer, RCX);
  put_op_imm(c, 4, 4, t->pointer, in->width == 8 ? 63 : 31);
  uint8_t *none = put_jump_if(c, CC_Z);
  unsigned always = in->flags_undefined & ~FLAG_OF;
  if (always) put_op_imm(c, 4, 4, RAX, (int32_t)~saved_form(always));
  put_op_imm(c, 4, 7, t->pointer, 1);
  uint8_t *one = put_jump_if(c, CC_Z);
  put_op_imm(c, 4, 4, RAX, (int32_t)~saved_form(FLAG_OF));
  patch_jump(none, c->at);
  patch_jump(one, c->at);
  end_save(t);
  t->in_host = false;
}

// An operand of a formula: a register, a constant, or memory, which is loaded.
static uint8_t keep_memory(struct translation *t, unsigned width, struct place m, bool second) {
  put_op_memory(&t->c, width, OP_LOAD, t->scratch, m);
  put_store(&t->c, t->scratch, in_context(second ? CONTEXT_SECOND : CONTEXT_FIRST));
  return OPERAND_KEPT;
}

// An operation on a destination and a source.
struct operands {
  bool memory;           // the operand of ModRM is memory
  bool to_register;      // the destination is the register of ModRM, the source its other operand
  bool constant;
  uint8_t destination, source;
};

static bool find_operands(const struct direct_insn *in, enum direct_formula *formula, struct operands *o) {
  static const uint8_t formulas[8] = {FORMULA_ADD,   FORMULA_LOGIC,    FORMULA_SAVED, FORMULA_SAVED,
                                      FORMULA_LOGIC, FORMULA_SUBTRACT, FORMULA_LOGIC, FORMULA_COMPARE};
  unsigned op = in->opcode, extension = in->modrm >> 3 & 7;
  if (in->opcode_map || in->vex || (in->what & INSN_HIGH_BYTE)) return false;
  *o = (struct operands){.memory = in->has_modrm && in->modrm < 0xc0, .destination = (uint8_t)insn_rm(in), .source = (uint8_t)insn_reg(in)};
  if (op < 0x40 && (op & 7) < 6) {
    *formula = formulas[op >> 3];
    o->to_register = (op & 6) == 2;
    o->constant = (op & 7) >= 4;
    if (o->constant) o->destination = RAX;
    if (o->to_register) {
      o->destination = (uint8_t)insn_reg(in);
      o->source = (uint8_t)insn_rm(in);
    }
  } else if (op >= 0x80 && op <= 0x83) {
    *formula = formulas[extension];
    o->constant = true;
  } else if (op == 0x84 || op == 0x85) {
    *formula = FORMULA_TEST;
  } else if (op == 0xa8 || op == 0xa9 || ((op == 0xf6 || op == 0xf7) && extension < 2)) {
    *formula = FORMULA_TEST;
    o->constant = true;
    if (op < 0xf0) o->destination = RAX;
  } else if ((op == 0xf6 || op == 0xf7) && extension == 3) {
    *formula = FORMULA_NEGATE;
  } else {
    return false;
  }
  return *formula != FORMULA_SAVED;
}

// Finds how the flags of the instruction, which has been executed, can be had later.
static void find_formula(struct translation *t, const struct direct_insn *in, struct place m) {
  struct direct_flags f = {.width = in->width, .first = OPERAND_KEPT, .second = OPERAND_KEPT};
  enum direct_formula formula;
  struct operands o;
  if (in->flags_undefined == FLAGS_ARITHMETIC) {
    // All 0, as of this number.
    t->flags = (struct direct_flags){
        .formula = FORMULA_LOGIC, .width = 8, .first = OPERAND_CONSTANT, .second = OPERAND_KEPT, .constant = 1};
    t->in_host = false;
    return;
  }
  if (shifts_by_constant(in)) {
    f.formula = (uint8_t)formula_of_shift(in);
    f.second = OPERAND_CONSTANT;
    f.constant = (int32_t)(in->has_modrm && (in->opcode & 0xfe) == 0xd0 ? 1 : in->imm & (in->width == 8 ? 63 : 31));
    f.undefined = in->flags_undefined;
    t->flags = f;
    return;
  }
  if (!sets_all(in) || in->flags_undefined || !find_operands(in, &formula, &o)) return;
  bool one = formula == FORMULA_LOGIC || formula == FORMULA_NEGATE;
  // Some are simpler than they look: TEST of a register with itself, and CMP with 0.
  if (formula == FORMULA_TEST && !o.memory && !o.constant && o.destination == o.source) formula = FORMULA_LOGIC;
  if (formula == FORMULA_COMPARE && o.constant && !in->imm) formula = FORMULA_LOGIC;
  one |= formula == FORMULA_LOGIC;
  if (formula == FORMULA_ADD && !o.memory && !o.constant && o.destination == o.source) return;
  f.formula = (uint8_t)formula;
  f.first = o.memory && !o.to_register ? keep_memory(t, in->width, m, false) : o.destination;
  if (o.constant && !one) {
    f.second = OPERAND_CONSTANT;
    f.constant = (int32_t)in->imm;
  } else if (!one) {
    f.second = o.memory && o.to_register ? keep_memory(t, in->width, m, true) : o.source;
  }
  t->flags = f;
}

// The instruction has set flags; m is its operand in memory.
void put_flags_after(struct translation *t, unsigned i, struct place m) {
  const struct direct_insn *in = &t->insns[i];
  unsigned undefined = in->flags_undefined;
  if (!changed_flags(in)) return;
  if (is_left_in_context(t, i) && matter_after(t, i)) return;
  if (!sets_all(in)) undefined |= t->flags.undefined & ~(unsigned)in->flags_set;
  t->flags = (struct direct_flags){
      .formula = FORMULA_HOST, .first = OPERAND_KEPT, .second = OPERAND_KEPT, .undefined = (uint16_t)undefined};
  t->in_host = true;
  if (!matter_after(t, i)) return;
  if (in->what & INSN_FLAGS_BY_COUNT) put_define_by_count(t, in);
  else find_formula(t, in, m);
}
