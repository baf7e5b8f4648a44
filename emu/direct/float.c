// Floating-point and vector state: between the host's registers and a thread, and the
// instructions that store and load it.
#include "general.h"

#include "float.h"
#include "x87.h"

static enum direct_stop failed(struct direct_engine *e) { return e->vector == UINT32_MAX ? direct_fault(e) : STOP_EXCEPTION; }

// ---- the host's registers ---------------------------------------------------------------

// The state of a processor as Linux starts a program.
void direct_float_init(struct direct_thread *t) {
  struct direct_float *f = (struct direct_float *)t->state;
  for (size_t i = 0; i < sizeof t->state; i++) t->state[i] = 0;
  f->fcw = FCW_START;
  f->mxcsr = MXCSR_START;
  f->mxcsr_mask = MXCSR_MASK;
  f->xstate_bv = STATE_ALL;
}

// Puts the thread's state into the host's registers.
void direct_float_load(struct direct_engine *e) {
  if (e->float_loaded) return;
  struct direct_float *f = float_of(e);
  __asm__ volatile("stmxcsr %0" : "=m"(e->host_mxcsr));
  if (e->level >= DIRECT_V3)
    __asm__ volatile("xrstor64 %0" : : "m"(*f), "a"(STATE_ALL), "d"(0));
  else
    __asm__ volatile("fxrstor64 %0" : : "m"(*f));
  e->float_loaded = true;
}

// Restores the x87 and SSE control that the host's C expects.
static void clean_host(const struct direct_engine *e, const struct direct_float *f) {
  if (f->ftw || f->fsw || f->fcw != FCW_START) __asm__ volatile("fninit");
  __asm__ volatile("ldmxcsr %0" : : "m"(e->host_mxcsr));
}

// Puts the state back into the thread. The addresses of the last x87 instruction and its operand
// would be the host's.
void direct_float_park(struct direct_engine *e) {
  if (!e->float_loaded) return;
  struct direct_float *f = float_of(e);
  if (e->level >= DIRECT_V3) {
    __asm__ volatile("xsave64 %0\n\tvzeroupper" : "+m"(*f) : "a"(STATE_ALL), "d"(0));
    f->xstate_bv = STATE_ALL;
  } else {
    __asm__ volatile("fxsave64 %0" : "=m"(*f));
  }
  f->fop = 0;
  f->fip = f->fdp = 0;
  f->mxcsr_mask = MXCSR_MASK;
  clean_host(e, f);
  e->float_loaded = false;
}

// ---- MXCSR ------------------------------------------------------------------------------

static enum direct_stop load_mxcsr(struct direct_engine *e, uint64_t va) {
  uint32_t value;
  if (!direct_read(e, va, &value, sizeof value)) return direct_fault(e);
  if (value & ~MXCSR_MASK) return direct_raise(e, VECTOR_PROTECTION);
  float_of(e)->mxcsr = value;
  return STOP_NONE;
}

// ---- FXSAVE and XSAVE ---------------------------------------------------------------------

#define LEGACY_STORED 416u  // bytes of an FXSAVE image that the processor writes

static enum direct_stop store_legacy(struct direct_engine *e, uint64_t va) {
  return direct_write(e, va, float_of(e), LEGACY_STORED) ? STOP_NONE : direct_fault(e);
}

// Takes over the x87 state of an image; the tags of registers are abridged in it.
static void load_x87(struct direct_float *f, const struct direct_float *from) {
  f->fcw = (from->fcw & 0x1f7f) | 0x40;
  f->fsw = from->fsw;
  f->ftw = from->ftw;
  for (int i = 0; i < 8; i++) copy_bytes(f->st[i], from->st[i], 10);
  // The summary follows from the exceptions and their masks.
  bool pending = f->fsw & ~f->fcw & 0x3f;
  f->fsw = (uint16_t)((f->fsw & 0x7f7f) | (pending ? 0x8080 : 0));
}

// Sets the state of x87 and SSE to that of an FXSAVE image, whose MXCSR has no reserved bits.
static void set_legacy(struct direct_float *f, const struct direct_float *image) {
  load_x87(f, image);
  f->mxcsr = image->mxcsr & MXCSR_MASK;
  copy_bytes(f->xmm, image->xmm, sizeof f->xmm);
}

// The same for a thread that does not run.
void direct_float_set(struct direct_thread *t, const void *image) {
  struct direct_float copy;
  copy_bytes(&copy, image, FLOAT_LEGACY_BYTES);
  set_legacy((struct direct_float *)t->state, &copy);
}

static enum direct_stop load_legacy(struct direct_engine *e, uint64_t va) {
  struct direct_float image, *f = float_of(e);
  if (!direct_read(e, va, &image, FLOAT_LEGACY_BYTES)) return direct_fault(e);
  if (image.mxcsr & ~MXCSR_MASK) return direct_raise(e, VECTOR_PROTECTION);
  set_legacy(f, &image);
  return STOP_NONE;
}

static bool is_zero(const void *bytes, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (((const uint8_t *)bytes)[i]) return false;
  return true;
}

// The components that are not as after a reset.
static uint64_t in_use(const struct direct_float *f) {
  bool x87 = f->fcw != FCW_START || f->fsw || f->ftw || !is_zero(f->st, sizeof f->st);
  uint64_t use = x87 ? STATE_X87 : 0;
  if (!is_zero(f->xmm, sizeof f->xmm)) use |= STATE_SSE;
  if (!is_zero(f->ymm_high, sizeof f->ymm_high)) use |= STATE_AVX;
  return use;
}

static uint64_t requested(struct direct_engine *e) { return (uint32_t)e->context->gpr[RAX] & STATE_ALL; }

// A range of an image, of one component.
struct part {
  uint16_t from, size;
  uint8_t components;  // it is stored for any of them
};

static const struct part parts[] = {
    {0, 24, STATE_X87}, {24, 8, STATE_SSE | STATE_AVX}, {32, 128, STATE_X87}, {160, 256, STATE_SSE}, {576, 256, STATE_AVX}};

#define PARTS (sizeof parts / sizeof parts[0])

static enum direct_stop store_extended(struct direct_engine *e, uint64_t va) {
  const struct direct_float *f = float_of(e);
  uint64_t wanted = requested(e), header;
  if (!direct_read(e, va + FLOAT_LEGACY_BYTES, &header, sizeof header)) return direct_fault(e);
  header = (header & ~wanted) | (in_use(f) & wanted);
  if (!direct_writable(e, va + FLOAT_LEGACY_BYTES, sizeof header)) return direct_fault(e);
  for (size_t i = 0; i < PARTS; i++)
    if ((parts[i].components & wanted) && !direct_writable(e, va + parts[i].from, parts[i].size)) return direct_fault(e);
  for (size_t i = 0; i < PARTS; i++)
    if (parts[i].components & wanted) direct_write(e, va + parts[i].from, (const uint8_t *)f + parts[i].from, parts[i].size);
  direct_write(e, va + FLOAT_LEGACY_BYTES, &header, sizeof header);
  return STOP_NONE;
}

static enum direct_stop load_extended(struct direct_engine *e, uint64_t va) {
  struct direct_float image, start, *f = float_of(e);
  uint64_t wanted = requested(e);
  if (!direct_read(e, va, &image, FLOAT_LEGACY_BYTES + 64)) return direct_fault(e);
  // As on AMD's processors, a header that is not valid is found before a fault of what follows it.
  bool fits = !(image.xstate_bv & ~(uint64_t)STATE_ALL) && !image.xcomp_bv && !image.header[0];
  bool mxcsr = wanted & (STATE_SSE | STATE_AVX);
  if (!fits || (mxcsr && (image.mxcsr & ~MXCSR_MASK))) return direct_raise(e, VECTOR_PROTECTION);
  if ((wanted & STATE_AVX) && !direct_read(e, va + 576, image.ymm_high, sizeof image.ymm_high)) return direct_fault(e);
  for (size_t i = 0; i < sizeof start; i++) ((uint8_t *)&start)[i] = 0;
  start.fcw = FCW_START;
  uint64_t present = image.xstate_bv;
  if (wanted & STATE_X87) load_x87(f, present & STATE_X87 ? &image : &start);
  if (mxcsr) f->mxcsr = image.mxcsr;
  if (wanted & STATE_SSE) copy_bytes(f->xmm, present & STATE_SSE ? image.xmm : start.xmm, sizeof f->xmm);
  if (wanted & STATE_AVX) copy_bytes(f->ymm_high, present & STATE_AVX ? image.ymm_high : start.ymm_high, sizeof f->ymm_high);
  return STOP_NONE;
}

// ---- the x87 environment --------------------------------------------------------------------

// The tag of a register by its contents: valid, zero, special, empty.
static unsigned tag_of(const struct direct_float *f, unsigned i) {
  if (!(f->ftw & 1u << i)) return 3;
  // The image has the registers by their place on the stack.
  const uint8_t *st = f->st[(i - (f->fsw >> 11)) & 7];
  uint64_t mantissa;
  uint16_t exponent;
  copy_bytes(&mantissa, st, 8);
  copy_bytes(&exponent, st + 8, 2);
  exponent &= 0x7fff;
  if (exponent == 0x7fff) return 2;
  if (!exponent) return mantissa ? 2 : 1;
  return mantissa >> 63 ? 0 : 2;
}

static uint16_t tags_of(const struct direct_float *f) {
  uint16_t tags = 0;
  for (unsigned i = 0; i < 8; i++) tags |= (uint16_t)(tag_of(f, i) << 2 * i);
  return tags;
}

#define ENVIRONMENT 28u
#define ENVIRONMENT_SHORT 14u

// Reports whether the instruction has the environment in the form of 16 bits.
static bool is_short(const struct direct_insn *in) { return in->operand16 && !in->w; }

// Writes the environment as FNSTENV does; returns its length.
static unsigned put_environment(const struct direct_float *f, bool brief, uint8_t *out) {
  uint32_t words[7] = {f->fcw, f->fsw, tags_of(f), 0, 0, 0, 0};
  for (int i = 0; i < 7; i++) {
    uint32_t wide = words[i] | (i < 3 || i == 6 ? 0xffff0000u : 0);
    if (brief) copy_bytes(out + 2 * i, &words[i], 2);
    else copy_bytes(out + 4 * i, &wide, 4);
  }
  return brief ? ENVIRONMENT_SHORT : ENVIRONMENT;
}

static void get_environment(struct direct_float *f, bool brief, const uint8_t *bytes) {
  uint16_t words[3];
  for (int i = 0; i < 3; i++) copy_bytes(&words[i], bytes + (brief ? 2 : 4) * i, 2);
  struct direct_float image = {.fcw = words[0], .fsw = words[1]};
  for (int i = 0; i < 8; i++)
    if ((words[2] >> 2 * i & 3) != 3) image.ftw |= (uint8_t)(1u << i);
  copy_bytes(image.st, f->st, sizeof image.st);
  load_x87(f, &image);
}

// The image has registers by their place on the stack, which another stack pointer changes.
static void rotate(struct direct_float *f, unsigned before, unsigned after) {
  uint8_t old[8][16];
  copy_bytes(old, f->st, sizeof old);
  for (unsigned i = 0; i < 8; i++) copy_bytes(f->st[(i - after) & 7], old[(i - before) & 7], 16);
}

static void reset_x87(struct direct_float *f) {
  f->fcw = FCW_START;
  f->fsw = 0;
  f->ftw = 0;
}

static enum direct_stop store_environment(struct direct_engine *e, const struct direct_insn *in, uint64_t va) {
  struct direct_float *f = float_of(e);
  uint8_t bytes[ENVIRONMENT + 80];
  bool saves = in->mnemonic == ZYDIS_MNEMONIC_FNSAVE;
  unsigned n = put_environment(f, is_short(in), bytes);
  for (int i = 0; saves && i < 8; i++, n += 10) copy_bytes(bytes + n, f->st[i], 10);
  if (!direct_write(e, va, bytes, n)) return direct_fault(e);
  if (saves) {
    rotate(f, f->fsw >> 11 & 7, 0);
    reset_x87(f);
    return STOP_NONE;
  }
  f->fcw |= 0x3f;
  f->fsw &= 0x7f7f;
  return STOP_NONE;
}

static enum direct_stop load_environment(struct direct_engine *e, const struct direct_insn *in, uint64_t va) {
  struct direct_float *f = float_of(e);
  uint8_t bytes[ENVIRONMENT + 80];
  bool restores = in->mnemonic == ZYDIS_MNEMONIC_FRSTOR;
  unsigned n = is_short(in) ? ENVIRONMENT_SHORT : ENVIRONMENT;
  if (!direct_read(e, va, bytes, n + (restores ? 80 : 0))) return direct_fault(e);
  unsigned before = f->fsw >> 11 & 7;
  get_environment(f, is_short(in), bytes);
  if (restores)
    for (int i = 0; i < 8; i++) copy_bytes(f->st[i], bytes + n + 10 * i, 10);
  else rotate(f, before, f->fsw >> 11 & 7);
  return STOP_NONE;
}

// ---- masked moves ---------------------------------------------------------------------------

// MASKMOVQ and MASKMOVDQU: stores the bytes whose mask has the highest bit.
static enum direct_stop store_masked_bytes(struct direct_engine *e, const struct direct_insn *in) {
  struct direct_float *f = float_of(e);
  bool mmx = in->mnemonic == ZYDIS_MNEMONIC_MASKMOVQ;
  unsigned top = f->fsw >> 11 & 7;
  const uint8_t *data = mmx ? f->st[(insn_reg(in) - top) & 7] : f->xmm[insn_reg(in)];
  const uint8_t *mask = mmx ? f->st[(insn_rm(in) - top) & 7] : f->xmm[insn_rm(in)];
  unsigned n = mmx ? 8 : 16;
  uint64_t at = e->context->gpr[RDI];
  if (in->address == 4) at = (uint32_t)at;
  if (in->memory.segment == SEGMENT_FS) at += e->context->fs_base;
  if (in->memory.segment == SEGMENT_GS) at += e->context->gs_base;
  e->vector = UINT32_MAX;
  if (!direct_check_address(e, in, at, n)) return failed(e);
  for (unsigned i = 0; i < n; i++)
    if ((mask[i] & 0x80) && !direct_locate(e, at + i, HEDDLE_WRITE)) return direct_fault(e);
  for (unsigned i = 0; i < n; i++)
    if (mask[i] & 0x80) direct_write(e, at + i, &data[i], 1);
  if (!mmx) return STOP_NONE;
  // An MMX instruction leaves all registers in use.
  rotate(f, top, 0);
  f->fsw &= 0xc7ff;
  f->ftw = 0xff;
  return STOP_NONE;
}

// The element i of n bytes of a register of 32 bytes.
static uint8_t *element(struct direct_float *f, unsigned reg, unsigned i, unsigned n) {
  unsigned at = i * n;
  return at < 16 ? &f->xmm[reg][at] : &f->ymm_high[reg][at - 16];
}

static void clear_register(struct direct_float *f, unsigned reg, unsigned from) {
  for (unsigned i = from; i < 32; i++) *element(f, reg, i, 1) = 0;
}

// VMASKMOVPS and the like: elements of 4 or 8 bytes whose mask has the highest bit.
static enum direct_stop move_masked(struct direct_engine *e, const struct direct_insn *in) {
  struct direct_float *f = float_of(e);
  bool wide = in->mnemonic == ZYDIS_MNEMONIC_VMASKMOVPD || in->mnemonic == ZYDIS_MNEMONIC_VPMASKMOVQ;
  bool stores = in->what & INSN_STORES;
  unsigned size = wide ? 8 : 4, n = (in->l ? 32u : 16u) / size, data = insn_reg(in);
  uint64_t at = direct_address_of(e, in);
  uint8_t loaded[32] = {0};
  e->vector = UINT32_MAX;
  for (unsigned i = 0; i < n; i++) {
    if (!(element(f, in->vvvv, i, size)[size - 1] & 0x80)) continue;
    if (!direct_check_address(e, in, at + i * size, size)) return STOP_EXCEPTION;
    if (stores ? !direct_writable(e, at + i * size, size) : !direct_read(e, at + i * size, loaded + i * size, size)) return direct_fault(e);
  }
  for (unsigned i = 0; i < n && stores; i++)
    if (element(f, in->vvvv, i, size)[size - 1] & 0x80) direct_write(e, at + i * size, element(f, data, i, size), size);
  if (stores) return STOP_NONE;
  for (unsigned i = 0; i < n; i++) copy_bytes(element(f, data, i, size), loaded + i * size, size);
  clear_register(f, data, n * size);
  return STOP_NONE;
}

// Gathers: each element takes its mask away, so that one that faults can be repeated.
static enum direct_stop gather(struct direct_engine *e, const struct direct_insn *in) {
  struct direct_float *f = float_of(e);
  bool wide_index = in->opcode & 1, wide = in->w;
  unsigned size = wide ? 8 : 4, index_size = wide_index ? 8 : 4, register_bytes = in->l ? 32 : 16;
  unsigned n = register_bytes / (size > index_size ? size : index_size);
  unsigned data = insn_reg(in), mask = in->vvvv, indices = in->memory.index;
  uint64_t base = (uint64_t)in->memory.disp;
  if (in->memory.base != NO_REGISTER) base += e->context->gpr[in->memory.base];
  for (unsigned i = 0; i < n; i++) {
    uint8_t *m = element(f, mask, i, size);
    if (m[size - 1] & 0x80) {
      int64_t index = 0;
      copy_bytes(&index, element(f, indices, i, index_size), index_size);
      if (!wide_index) index = (int32_t)index;
      uint64_t at = base + (uint64_t)index * in->memory.scale;
      if (in->memory.narrow) at = (uint32_t)at;
      if (in->memory.segment == SEGMENT_FS) at += e->context->fs_base;
      if (in->memory.segment == SEGMENT_GS) at += e->context->gs_base;
      e->vector = UINT32_MAX;
      if (!direct_check_address(e, in, at, size)) return STOP_EXCEPTION;
      uint8_t loaded[8];
      if (!direct_read(e, at, loaded, size)) return direct_fault(e);
      copy_bytes(element(f, data, i, size), loaded, size);
    }
    for (unsigned k = 0; k < size; k++) m[k] = 0;
  }
  clear_register(f, mask, 0);
  clear_register(f, data, n * size);
  return STOP_NONE;
}

// ---- dispatch -------------------------------------------------------------------------------

static uint64_t alignment_of(const struct direct_insn *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
      return 16;
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
      return 64;
    default:
      return 1;
  }
}

// Instructions with an operand in memory of their own form.
static enum direct_stop emulate_memory(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t va = direct_address_of(e, in);
  if (!direct_check_address(e, in, va, 4)) return STOP_EXCEPTION;
  if (va & (alignment_of(in) - 1)) return direct_raise(e, VECTOR_PROTECTION);
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_LDMXCSR:
    case ZYDIS_MNEMONIC_VLDMXCSR:
      return load_mxcsr(e, va);
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
      return store_legacy(e, va);
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
      return load_legacy(e, va);
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
      return store_extended(e, va);
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
      return load_extended(e, va);
    case ZYDIS_MNEMONIC_FNSTENV:
    case ZYDIS_MNEMONIC_FNSAVE:
      return store_environment(e, in, va);
    default:
      return load_environment(e, in, va);
  }
}

// ---- x87 instructions that C computes -------------------------------------------------------

_Static_assert(offsetof(struct heddle_x87, st) == offsetof(struct direct_float, st), "FXSAVE image");

static enum direct_stop execute_x87(struct direct_engine *e, const struct direct_insn *in) {
  struct heddle_x87 state;
  copy_bytes(&state, float_of(e), sizeof state);
  if (!heddle_x87_execute(&state, in->modrm)) return direct_raise(e, VECTOR_FLOAT);
  copy_bytes(float_of(e), &state, sizeof state);
  return STOP_NONE;
}

// Executes an instruction on the state as the thread has it.
enum direct_stop direct_emulate_float(struct direct_engine *e, const struct direct_insn *in) {
  direct_float_park(e);
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
      return store_masked_bytes(e, in);
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ:
      return move_masked(e, in);
    case ZYDIS_MNEMONIC_LDMXCSR:
    case ZYDIS_MNEMONIC_VLDMXCSR:
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
    case ZYDIS_MNEMONIC_FNSTENV:
    case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FLDENV:
    case ZYDIS_MNEMONIC_FRSTOR:
      return emulate_memory(e, in);
    case ZYDIS_MNEMONIC_VGATHERDPS:
    case ZYDIS_MNEMONIC_VGATHERDPD:
    case ZYDIS_MNEMONIC_VGATHERQPS:
    case ZYDIS_MNEMONIC_VGATHERQPD:
    case ZYDIS_MNEMONIC_VPGATHERDD:
    case ZYDIS_MNEMONIC_VPGATHERDQ:
    case ZYDIS_MNEMONIC_VPGATHERQD:
    case ZYDIS_MNEMONIC_VPGATHERQQ:
      return gather(e, in);
    case ZYDIS_MNEMONIC_F2XM1:
    case ZYDIS_MNEMONIC_FYL2X:
    case ZYDIS_MNEMONIC_FPTAN:
    case ZYDIS_MNEMONIC_FPATAN:
    case ZYDIS_MNEMONIC_FXTRACT:
    case ZYDIS_MNEMONIC_FPREM1:
    case ZYDIS_MNEMONIC_FPREM:
    case ZYDIS_MNEMONIC_FYL2XP1:
    case ZYDIS_MNEMONIC_FSINCOS:
    case ZYDIS_MNEMONIC_FSCALE:
    case ZYDIS_MNEMONIC_FSIN:
    case ZYDIS_MNEMONIC_FCOS:
      return execute_x87(e, in);
    default:
      return direct_approximate(e, in);
  }
}
