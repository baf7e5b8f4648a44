// String instructions.
#include "general.h"

#include "engine.h"

static uint64_t *gpr(struct direct_engine *e) { return e->context->gpr; }

// The operation, apart from its width.
enum { MOVES, STORES, LOADS, COMPARES, SCANS };

static int operation_of(const struct direct_insn *in) {
  switch (in->opcode & 0xfe) {
    case 0xa4:
      return MOVES;
    case 0xaa:
      return STORES;
    case 0xac:
      return LOADS;
    case 0xa6:
      return COMPARES;
    default:
      return SCANS;
  }
}

static uint64_t truncate(const struct direct_insn *in, uint64_t address) { return in->address == 4 ? (uint32_t)address : address; }

// The address of the source, at RSI, and of the destination, at RDI.
static uint64_t source(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t base = in->memory.segment == SEGMENT_FS ? e->context->fs_base : in->memory.segment == SEGMENT_GS ? e->context->gs_base : 0;
  return base + truncate(in, gpr(e)[RSI]);
}

static uint64_t destination(struct direct_engine *e, const struct direct_insn *in) { return truncate(in, gpr(e)[RDI]); }

static void advance(struct direct_engine *e, const struct direct_insn *in, unsigned r) {
  int64_t step = e->flags & FLAG_DF ? -(int64_t)in->width : in->width;
  gpr(e)[r] = truncate(in, gpr(e)[r] + (uint64_t)step);
}

static bool load(struct direct_engine *e, const struct direct_insn *in, uint64_t va, uint64_t *value) {
  *value = 0;
  e->vector = UINT32_MAX;
  return direct_check_address(e, in, va, in->width) && direct_read(e, va, value, in->width);
}

static bool store(struct direct_engine *e, const struct direct_insn *in, uint64_t va, uint64_t value) {
  e->vector = UINT32_MAX;
  return direct_check_address(e, in, va, in->width) && direct_write(e, va, &value, in->width);
}

// Sets the flags as CMP of two values does.
static void compare(struct direct_engine *e, uint64_t a, uint64_t b, unsigned width) {
  unsigned bits = 8 * width;
  uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1, sign = (uint64_t)1 << (bits - 1);
  a &= mask;
  b &= mask;
  uint64_t r = (a - b) & mask, flags = 0;
  if (a < b) flags |= FLAG_CF;
  if (!(__builtin_popcountll(r & 0xff) & 1)) flags |= FLAG_PF;
  if ((a ^ b ^ r) & 0x10) flags |= FLAG_AF;
  if (!r) flags |= FLAG_ZF;
  if (r & sign) flags |= FLAG_SF;
  if ((a ^ b) & (a ^ r) & sign) flags |= FLAG_OF;
  set_flags_of(e->context, flags);
}

static enum direct_stop failed(struct direct_engine *e) { return e->vector == UINT32_MAX ? direct_fault(e) : STOP_EXCEPTION; }

// One execution without a prefix.
static enum direct_stop once(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t a, b, mask = in->width == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * in->width) - 1;
  switch (operation_of(in)) {
    case MOVES:
      if (!load(e, in, source(e, in), &a) || !store(e, in, destination(e, in), a)) return failed(e);
      break;
    case STORES:
      if (!store(e, in, destination(e, in), gpr(e)[RAX])) return failed(e);
      advance(e, in, RDI);
      return STOP_NONE;
    case LOADS:
      if (!load(e, in, source(e, in), &a)) return failed(e);
      gpr(e)[RAX] = in->width >= 4 ? a : (gpr(e)[RAX] & ~mask) | a;
      advance(e, in, RSI);
      return STOP_NONE;
    case COMPARES:
      if (!load(e, in, destination(e, in), &b) || !load(e, in, source(e, in), &a)) return failed(e);
      compare(e, a, b, in->width);
      break;
    default:
      if (!load(e, in, destination(e, in), &b)) return failed(e);
      compare(e, gpr(e)[RAX], b, in->width);
      advance(e, in, RDI);
      return STOP_NONE;
  }
  advance(e, in, RSI);
  advance(e, in, RDI);
  return STOP_NONE;
}

// Executes a string instruction; of a repeated one, an iteration, or its end when no iterations
// are left. The PC stays at the instruction after the last iteration, too.
enum direct_stop direct_string(struct direct_engine *e, const struct direct_insn *in) {
  struct direct_context *c = e->context;
  c->rip = in->pc + in->length;
  bool repeated = in->what & INSN_REPEATED;
  if (repeated && !truncate(in, gpr(e)[RCX])) return STOP_NONE;
  enum direct_stop why = once(e, in);
  if (why) {
    c->rip = in->pc;
    return why;
  }
  if (!repeated) return why;
  gpr(e)[RCX] = truncate(in, gpr(e)[RCX] - 1);
  int operation = operation_of(in);
  bool equal = flags_of(c) & FLAG_ZF, while_equal = !(in->what & INSN_REPNE);
  bool over = (operation == COMPARES || operation == SCANS) && equal != while_equal;
  if (!over) c->rip = in->pc;
  return STOP_NONE;
}

// ---- many iterations ------------------------------------------------------------------------

// The host address of the elements from va on, and how many of them the page has. NULL: the tables do
// not have the page.
static uint8_t *elements_at(struct direct_engine *e, const struct direct_insn *in, uint64_t va, bool write, uint64_t *n) {
  uint64_t room = (HEDDLE_PAGE_SIZE - offset_of(va)) / in->width;
  if (!is_canonical(va) || !direct_has_page(e, va, write)) return NULL;
  if (*n > room) *n = room;
  return *n ? direct_locate(e, va, write ? HEDDLE_WRITE : HEDDLE_READ) : NULL;
}

// Elements of which addresses need not be multiples of their size.
typedef uint16_t element16 __attribute__((aligned(1), may_alias));
typedef uint32_t element32 __attribute__((aligned(1), may_alias));
typedef uint64_t element64 __attribute__((aligned(1), may_alias));

static inline uint64_t element(const uint8_t *at, unsigned width) {
  switch (width) {
    case 1:
      return *at;
    case 2:
      return *(const element16 *)at;
    case 4:
      return *(const element32 *)at;
    default:
      return *(const element64 *)at;
  }
}

// MOVS and STOS. Where source and destination overlap the order matters, which is the host's own.
static void move_elements(uint8_t *to, const uint8_t *from, uint64_t n, unsigned width) {
  if (width == 1) __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
  else if (width == 2) __asm__ volatile("rep movsw" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
  else if (width == 4) __asm__ volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
  else __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static void fill_elements(uint8_t *to, uint64_t value, uint64_t n, unsigned width) {
  if (width == 1) __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(value) : "memory");
  else if (width == 2) __asm__ volatile("rep stosw" : "+D"(to), "+c"(n) : "a"(value) : "memory");
  else if (width == 4) __asm__ volatile("rep stosl" : "+D"(to), "+c"(n) : "a"(value) : "memory");
  else __asm__ volatile("rep stosq" : "+D"(to), "+c"(n) : "a"(value) : "memory");
}

// The iterations of CMPS or SCAS before the one that ends it, of n at most, with the flags of the last.
// From is NULL for SCAS.
static uint64_t compare_elements(struct direct_engine *e, const struct direct_insn *in, const uint8_t *to, const uint8_t *from,
                                 uint64_t n) {
  unsigned width = in->width;
  bool while_equal = !(in->what & INSN_REPNE);
  uint64_t mask = width == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * width) - 1;
  uint64_t a = gpr(e)[RAX] & mask, b = 0, i = 0, last_a = a, last_b = 0;
  for (; i < n; i++) {
    if (from) a = element(from + i * width, width);
    b = element(to + i * width, width);
    if ((a == b) != while_equal) break;
    last_a = a;
    last_b = b;
  }
  if (i) compare(e, last_a, last_b, width);
  return i;
}

// Executes iterations of a repeated instruction, at most that many, none of which is its last, changes
// code, or needs a page that the tables do not have. Returns their number: 0 means that the next one has
// to be executed by direct_string.
uint64_t direct_string_iterations(struct direct_engine *e, const struct direct_insn *in, uint64_t most) {
  int operation = operation_of(in);
  if (in->address != 8 || operation == LOADS || (e->flags & (FLAG_DF | FLAG_AC))) return 0;
  bool has_source = operation == MOVES || operation == COMPARES, stores = operation == MOVES || operation == STORES;
  uint64_t n = gpr(e)[RCX];
  if (n <= 1) return 0;
  n = n - 1 < most ? n - 1 : most;
  const uint8_t *from = NULL;
  if (has_source && !(from = elements_at(e, in, source(e, in), false, &n))) return 0;
  uint8_t *to = elements_at(e, in, destination(e, in), stores, &n);
  if (!to) return 0;
  if (operation == MOVES) move_elements(to, from, n, in->width);
  else if (operation == STORES) fill_elements(to, gpr(e)[RAX], n, in->width);
  else n = compare_elements(e, in, to, from, n);
  if (has_source) gpr(e)[RSI] += n * in->width;
  gpr(e)[RDI] += n * in->width;
  gpr(e)[RCX] -= n;
  return n;
}
