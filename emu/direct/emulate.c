// Instructions that C executes: those that see or change what the guest only believes to have
// (flags of the system, segments, the clock, the processor's name), and a few that are rare.
#include "general.h"

#include "engine.h"

static uint64_t *gpr(struct direct_engine *e) { return e->context->gpr; }

static enum direct_stop failed(struct direct_engine *e) { return e->vector == UINT32_MAX ? direct_fault(e) : STOP_EXCEPTION; }

static void write_register(struct direct_engine *e, unsigned r, uint64_t value, unsigned width) {
  if (width == 2) gpr(e)[r] = (gpr(e)[r] & ~(uint64_t)0xffff) | (uint16_t)value;
  else gpr(e)[r] = width == 4 ? (uint32_t)value : value;
}

static unsigned stack_width(const struct direct_insn *in) { return in->operand16 && !in->w ? 2 : 8; }

static bool read_memory(struct direct_engine *e, const struct direct_insn *in, uint64_t va, void *to, unsigned n) {
  e->vector = UINT32_MAX;
  return direct_check_address(e, in, va, n) && direct_read(e, va, to, n);
}

static bool write_memory(struct direct_engine *e, const struct direct_insn *in, uint64_t va, const void *from, unsigned n) {
  e->vector = UINT32_MAX;
  return direct_check_address(e, in, va, n) && direct_write(e, va, from, n);
}

// ---- flags ------------------------------------------------------------------------------

#define FLAGS_ALWAYS 0x202u
#define FLAGS_FREE (FLAGS_ARITHMETIC | FLAG_TF | FLAG_DF | FLAG_NT | FLAG_AC | FLAG_ID)

static uint64_t all_flags(struct direct_engine *e) { return flags_of(e->context) | e->flags | FLAGS_ALWAYS; }

// Sets those flags in the mask that an unprivileged program can set.
static void set_flags(struct direct_engine *e, uint64_t flags, uint64_t mask) {
  flags = (all_flags(e) & ~(mask & FLAGS_FREE)) | (flags & mask & FLAGS_FREE);
  set_flags_of(e->context, flags);
  e->flags = flags & ~(uint64_t)FLAGS_ARITHMETIC;
}

static enum direct_stop pushf(struct direct_engine *e, const struct direct_insn *in) {
  return direct_push(e, all_flags(e), stack_width(in)) ? STOP_NONE : failed(e);
}

static enum direct_stop popf(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t value;
  if (!direct_pop(e, &value, stack_width(in))) return failed(e);
  set_flags(e, value, stack_width(in) == 2 ? 0xffff : UINT64_MAX);
  return STOP_NONE;
}

// ---- segments ---------------------------------------------------------------------------

enum { ES, CS, SS, DS, FS, GS };

// The descriptors that Linux has for programs, and the answers of LAR and LSL.
struct descriptor {
  uint16_t selector;
  uint32_t rights, limit;
  bool code, writable;
};

#define SELECTOR_CODE 0x33u
#define SELECTOR_DATA 0x2bu
#define SELECTOR_CPU 0x7bu

static bool find_descriptor(const struct direct_engine *e, uint16_t selector, struct descriptor *d) {
  switch (selector | 3) {
    case 0x23:
      *d = (struct descriptor){0x23, 0x00cffb00, UINT32_MAX, true, false};
      return true;
    case SELECTOR_DATA:
      *d = (struct descriptor){SELECTOR_DATA, 0x00cff300, UINT32_MAX, false, true};
      return true;
    case SELECTOR_CODE:
      *d = (struct descriptor){SELECTOR_CODE, 0x00affb00, UINT32_MAX, true, false};
      return true;
    case SELECTOR_CPU:
      *d = (struct descriptor){SELECTOR_CPU, 0x0040f500, e->core, false, false};
      return true;
    default:
      return false;
  }
}

static bool is_null(uint16_t selector) { return selector < 4; }

// Loads a segment register. False: #GP.
static bool load_segment(struct direct_engine *e, unsigned segment, uint16_t selector) {
  struct descriptor d;
  if (segment == CS || segment > GS) return false;
  if (is_null(selector)) {
    if (segment == SS) return false;
  } else if (!find_descriptor(e, selector, &d)) {
    return false;
  } else if (segment == SS && (!d.writable || (selector & 3) != 3)) {
    return false;
  }
  e->thread->segments[segment] = selector;
  if (segment == FS) e->context->fs_base = 0;
  if (segment == GS) e->context->gs_base = 0;
  return true;
}

static enum direct_stop move_segment(struct direct_engine *e, const struct direct_insn *in) {
  bool load = in->opcode == 0x8e;
  unsigned segment = in->modrm >> 3 & 7;
  uint16_t selector;
  if (load) {
    if (segment == CS || segment > GS) return direct_raise(e, VECTOR_INVALID_OPCODE);
    if (insn_is_register(in)) selector = (uint16_t)gpr(e)[insn_rm(in)];
    else if (!read_memory(e, in, direct_address_of(e, in), &selector, 2)) return failed(e);
    return load_segment(e, segment, selector) ? STOP_NONE : direct_raise(e, VECTOR_PROTECTION);
  }
  selector = e->thread->segments[segment];
  if (insn_is_register(in)) write_register(e, insn_rm(in), selector, stack_width(in));
  else if (!write_memory(e, in, direct_address_of(e, in), &selector, 2)) return failed(e);
  return STOP_NONE;
}

static enum direct_stop push_segment(struct direct_engine *e, const struct direct_insn *in) {
  unsigned segment = in->opcode >= 0xa8 ? GS : FS;
  return direct_push(e, e->thread->segments[segment], stack_width(in)) ? STOP_NONE : failed(e);
}

static enum direct_stop pop_segment(struct direct_engine *e, const struct direct_insn *in) {
  unsigned segment = in->opcode >= 0xa8 ? GS : FS;
  uint64_t value, before = gpr(e)[RSP];
  if (!direct_pop(e, &value, stack_width(in))) return failed(e);
  if (load_segment(e, segment, (uint16_t)value)) return STOP_NONE;
  gpr(e)[RSP] = before;
  return direct_raise(e, VECTOR_PROTECTION);
}

// The bytes of the offset in a far pointer: AMD's processors have no wider ones.
static unsigned far_width(const struct direct_insn *in) { return in->width == 2 ? 2 : 4; }

// LFS, LGS and LSS.
static enum direct_stop load_far_pointer(struct direct_engine *e, const struct direct_insn *in) {
  unsigned segment = in->opcode == 0xb2 ? SS : in->opcode == 0xb4 ? FS : GS;
  uint8_t bytes[10] = {0};
  uint64_t offset = 0;
  uint16_t selector;
  unsigned width = far_width(in);
  if (!read_memory(e, in, direct_address_of(e, in), bytes, width + 2)) return failed(e);
  copy_bytes(&offset, bytes, width);
  copy_bytes(&selector, bytes + width, 2);
  if (!load_segment(e, segment, selector)) return direct_raise(e, VECTOR_PROTECTION);
  write_register(e, insn_reg(in), offset, in->width);
  return STOP_NONE;
}

static bool read_selector(struct direct_engine *e, const struct direct_insn *in, uint16_t *selector) {
  if (insn_is_register(in)) {
    *selector = (uint16_t)gpr(e)[insn_rm(in)];
    return true;
  }
  return read_memory(e, in, direct_address_of(e, in), selector, 2);
}

static void set_zero_flag(struct direct_engine *e, bool on) {
  uint64_t flags = flags_of(e->context) & ~(uint64_t)FLAG_ZF;
  set_flags_of(e->context, on ? flags | FLAG_ZF : flags);
}

// LAR, LSL, VERR and VERW.
static enum direct_stop describe_segment(struct direct_engine *e, const struct direct_insn *in) {
  uint16_t selector;
  struct descriptor d;
  if (!read_selector(e, in, &selector)) return failed(e);
  bool found = !is_null(selector) && find_descriptor(e, selector, &d);
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_LAR:
      if (found) write_register(e, insn_reg(in), d.rights, in->width);
      break;
    case ZYDIS_MNEMONIC_LSL:
      if (found) write_register(e, insn_reg(in), d.limit, in->width);
      break;
    case ZYDIS_MNEMONIC_VERW:
      found = found && d.writable;
      break;
    default:
      break;
  }
  set_zero_flag(e, found);
  return STOP_NONE;
}

// SGDT, SIDT, SLDT, SMSW and STR, as Linux answers in the place of a processor that does not let
// programs ask (UMIP).
static enum direct_stop describe_system(struct direct_engine *e, const struct direct_insn *in) {
  static const uint64_t gdt = 0xfffffffffffe0000u, idt = 0xffffffffffff0000u;
  uint64_t value = 0;
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_SGDT:
    case ZYDIS_MNEMONIC_SIDT: {
      uint8_t bytes[10] = {0};
      copy_bytes(bytes + 2, in->mnemonic == ZYDIS_MNEMONIC_SGDT ? &gdt : &idt, 8);
      return write_memory(e, in, direct_address_of(e, in), bytes, sizeof bytes) ? STOP_NONE : failed(e);
    }
    case ZYDIS_MNEMONIC_SMSW:
      value = 0x80050033;
      break;
    case ZYDIS_MNEMONIC_STR:
      value = 0x40;
      break;
    default:
      break;
  }
  if (insn_is_register(in)) write_register(e, insn_rm(in), value, in->width);
  else if (!write_memory(e, in, direct_address_of(e, in), &value, 2)) return failed(e);
  return STOP_NONE;
}

// ---- far branches -----------------------------------------------------------------------

// Continues at an address in another code segment, which must be that of programs.
static enum direct_stop go_far(struct direct_engine *e, uint16_t selector, uint64_t offset) {
  if ((selector | 3) != SELECTOR_CODE || !is_canonical(offset)) return direct_raise(e, VECTOR_PROTECTION);
  e->context->rip = offset;
  return STOP_NONE;
}

static enum direct_stop branch_far(struct direct_engine *e, const struct direct_insn *in) {
  uint8_t bytes[10];
  uint64_t offset = 0, before = gpr(e)[RSP];
  uint16_t selector;
  unsigned width = far_width(in);
  if (!read_memory(e, in, direct_address_of(e, in), bytes, width + 2)) return failed(e);
  copy_bytes(&offset, bytes, width);
  copy_bytes(&selector, bytes + width, 2);
  enum direct_stop why = go_far(e, selector, offset);
  if (why || in->mnemonic == ZYDIS_MNEMONIC_JMP) return why;
  if (direct_push(e, SELECTOR_CODE, in->width) && direct_push(e, in->pc + in->length, in->width)) return STOP_NONE;
  gpr(e)[RSP] = before;
  return failed(e);
}

static enum direct_stop return_far(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t offset, selector, before = gpr(e)[RSP];
  unsigned width = in->width;
  if (!direct_pop(e, &offset, width) || !direct_pop(e, &selector, width)) {
    gpr(e)[RSP] = before;
    return failed(e);
  }
  bool fits = (uint16_t)selector == SELECTOR_CODE;
  enum direct_stop why = fits ? go_far(e, (uint16_t)selector, offset) : direct_raise(e, VECTOR_PROTECTION);
  if (why) gpr(e)[RSP] = before;
  else gpr(e)[RSP] += (uint16_t)in->imm;
  return why;
}

static enum direct_stop return_from_interrupt(struct direct_engine *e, const struct direct_insn *in) {
  enum { OFFSET, CODE, FLAGS, STACK, DATA, WORDS };
  uint64_t words[WORDS], before = gpr(e)[RSP];
  unsigned width = in->width;
  for (unsigned i = 0; i < WORDS; i++) {
    if (direct_pop(e, &words[i], width)) continue;
    gpr(e)[RSP] = before;
    return failed(e);
  }
  bool fits = (uint16_t)words[CODE] == SELECTOR_CODE && (uint16_t)words[DATA] == SELECTOR_DATA;
  enum direct_stop why = fits ? go_far(e, SELECTOR_CODE, words[OFFSET]) : direct_raise(e, VECTOR_PROTECTION);
  if (why) {
    gpr(e)[RSP] = before;
    return why;
  }
  set_flags(e, words[FLAGS], width == 2 ? 0xffff : UINT64_MAX);
  gpr(e)[RSP] = words[STACK];
  return STOP_NONE;
}

// ---- the processor and its clock --------------------------------------------------------

// The processor that the guest sees. glibc demands a vendor that it knows, and FPU and MMX.
void direct_cpuid(const struct direct_engine *e, uint32_t leaf, uint32_t subleaf, uint32_t out[4]) {
  static const char brand[48] = "heddle emulated x86-64 CPU";
  uint32_t *eax = &out[0], *ebx = &out[1], *ecx = &out[2], *edx = &out[3];
  bool v3 = e->level >= DIRECT_V3;
  for (int i = 0; i < 4; i++) out[i] = 0;
  switch (leaf) {
    case 0:
    case 0x80000000u:
      *eax = leaf ? 0x80000008u : v3 ? 13 : 7;
      *ebx = 0x68747541;  // AuthenticAMD
      *edx = 0x69746e65;
      *ecx = 0x444d4163;
      break;
    case 1:
      *eax = 0x00100f42;
      *ebx = 8u << 8 | e->cores << 16 | e->core << 24;
      // SSE3, SSSE3, CX16, SSE4.1, SSE4.2, POPCNT.
      *ecx = 1u | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23;
      // FMA, MOVBE, XSAVE, OSXSAVE, AVX, F16C.
      if (v3) *ecx |= 1u << 12 | 1u << 22 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 29;
      *edx = 0x078bfbff | (e->cores > 1 ? 1u << 28 : 0);
      break;
    case 7:  // BMI1, AVX2, BMI2
      if (v3 && subleaf == 0) *ebx = 1u << 3 | 1u << 5 | 1u << 8;
      break;
    case 13:  // XSAVE: x87, SSE and AVX state
      if (v3 && subleaf == 0) {
        *eax = 7;
        *ebx = *ecx = 832;
      }
      if (v3 && subleaf == 2) {
        *eax = 256;
        *ebx = 576;
      }
      break;
    case 0x80000001u:
      *eax = 0x00100f42;
      *ecx = 1u | (e->cores > 1 ? 2u : 0) | (v3 ? 1u << 5 : 0);  // LAHF, CMP legacy, LZCNT
      *edx = 1u << 11 | 1u << 20 | 1u << 29;                     // SYSCALL, NX, long mode
      break;
    case 0x80000002u:
    case 0x80000003u:
    case 0x80000004u:
      copy_bytes(out, brand + 16 * (leaf - 0x80000002u), 16);
      break;
    case 0x80000005u:  // L1: 64 KiB each, 2 ways, lines of 64 bytes
      *ecx = *edx = 64u << 24 | 2u << 16 | 1u << 8 | 64;
      break;
    case 0x80000006u:  // L2: 512 KiB, 16 ways; L3: 6 MiB, 48 ways
      *ecx = 512u << 16 | 8u << 12 | 1u << 8 | 64;
      *edx = 12u << 18 | 11u << 12 | 1u << 8 | 64;
      break;
    case 0x80000008u:
      *eax = 48u << 8 | 48;
      *ecx = e->cores - 1;
      break;
    default:
      break;
  }
}

static void cpuid(struct direct_engine *e) {
  uint32_t out[4];
  direct_cpuid(e, (uint32_t)gpr(e)[RAX], (uint32_t)gpr(e)[RCX], out);
  gpr(e)[RAX] = out[0];
  gpr(e)[RBX] = out[1];
  gpr(e)[RCX] = out[2];
  gpr(e)[RDX] = out[3];
}

static void read_clock(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t run = e->tsc_instructions ? direct_instructions_now(e) : direct_cycles_now(e);
  uint64_t tsc = (uint64_t)((unsigned __int128)(e->clock + run) * e->tsc_multiplier >> 10);
  gpr(e)[RAX] = (uint32_t)tsc;
  gpr(e)[RDX] = tsc >> 32;
  if (in->mnemonic == ZYDIS_MNEMONIC_RDTSCP) gpr(e)[RCX] = e->core;
}

static enum direct_stop xgetbv(struct direct_engine *e) {
  if ((uint32_t)gpr(e)[RCX]) return direct_raise(e, VECTOR_PROTECTION);
  gpr(e)[RAX] = 7;
  gpr(e)[RDX] = 0;
  return STOP_NONE;
}

// ---- others -----------------------------------------------------------------------------

static enum direct_stop enter(struct direct_engine *e, const struct direct_insn *in) {
  unsigned width = stack_width(in), level = (unsigned)in->imm2 & 31;
  uint64_t rsp = gpr(e)[RSP], rbp = gpr(e)[RBP], value, frame, at = rbp;
  if (!direct_push(e, rbp, width)) return failed(e);
  frame = gpr(e)[RSP];
  bool ok = true;
  for (unsigned i = 1; ok && i < level; i++) {
    at -= width;
    value = 0;
    e->vector = is_canonical(at) && is_canonical(at + width - 1) ? UINT32_MAX : VECTOR_STACK;
    ok = e->vector == UINT32_MAX && direct_read(e, at, &value, width) && direct_push(e, value, width);
  }
  if (ok && level) ok = direct_push(e, frame, width);
  if (!ok) {
    gpr(e)[RSP] = rsp;
    return failed(e);
  }
  uint64_t top = gpr(e)[RSP] - (uint16_t)in->imm;
  // The processor looks whether the new top of the stack can be written.
  e->vector = UINT32_MAX;
  if (!is_canonical(top)) e->vector = VECTOR_STACK;
  if (!is_canonical(top) || !direct_locate(e, top, HEDDLE_WRITE)) {
    gpr(e)[RSP] = rsp;
    return failed(e);
  }
  gpr(e)[RSP] = top;
  write_register(e, RBP, frame, width);
  return STOP_NONE;
}

static enum direct_stop xlat(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t at = gpr(e)[RBX] + (uint8_t)gpr(e)[RAX];
  if (in->address == 4) at = (uint32_t)at;
  if (in->memory.segment == SEGMENT_FS) at += e->context->fs_base;
  if (in->memory.segment == SEGMENT_GS) at += e->context->gs_base;
  uint8_t value;
  if (!read_memory(e, in, at, &value, 1)) return failed(e);
  gpr(e)[RAX] = (gpr(e)[RAX] & ~(uint64_t)0xff) | value;
  return STOP_NONE;
}

static enum direct_stop flush_line(struct direct_engine *e, const struct direct_insn *in) {
  uint8_t value;
  return read_memory(e, in, direct_address_of(e, in), &value, 1) ? STOP_NONE : failed(e);
}

// SHLD and SHRD of 16 bits. By more than 16 bits, which the manual leaves undefined, the two
// operands and the first again are shifted as one.
static enum direct_stop shift_double(struct direct_engine *e, const struct direct_insn *in) {
  bool by_cl = in->what & INSN_FLAGS_BY_COUNT, left = in->mnemonic == ZYDIS_MNEMONIC_SHLD;
  unsigned count = (unsigned)(by_cl ? gpr(e)[RCX] : (uint64_t)in->imm) & 31;
  uint64_t va = 0, source = (uint16_t)gpr(e)[insn_reg(in)];
  uint16_t old = 0;
  if (insn_is_register(in)) {
    old = (uint16_t)gpr(e)[insn_rm(in)];
  } else {
    va = direct_address_of(e, in);
    if (!read_memory(e, in, va, &old, 2) || !direct_writable(e, va, 2)) return failed(e);
  }
  if (!count) return STOP_NONE;
  uint64_t all = left ? (uint64_t)old << 32 | source << 16 | old : (uint64_t)old << 32 | source << 16 | old;
  uint16_t result = (uint16_t)(left ? all << count >> 32 : all >> count);
  bool carry = left ? all >> (48 - count) & 1 : all >> (count - 1) & 1;
  if (insn_is_register(in)) write_register(e, insn_rm(in), result, 2);
  else direct_write(e, va, &result, 2);
  uint64_t flags = carry ? FLAG_CF : 0;
  if (!result) flags |= FLAG_ZF;
  if (result & 0x8000) flags |= FLAG_SF;
  if (!(__builtin_popcount(result & 0xff) & 1)) flags |= FLAG_PF;
  if (count == 1 && ((result ^ old) & 0x8000)) flags |= FLAG_OF;
  set_flags_of(e->context, flags);
  return STOP_NONE;
}

static enum direct_stop emulate(struct direct_engine *e, const struct direct_insn *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFQ:
      return pushf(e, in);
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
      return popf(e, in);
    case ZYDIS_MNEMONIC_CLD:
      e->flags &= ~(uint64_t)FLAG_DF;
      return STOP_NONE;
    case ZYDIS_MNEMONIC_STD:
      e->flags |= FLAG_DF;
      return STOP_NONE;
    case ZYDIS_MNEMONIC_CPUID:
      cpuid(e);
      return STOP_NONE;
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
      read_clock(e, in);
      return STOP_NONE;
    case ZYDIS_MNEMONIC_XGETBV:
      return xgetbv(e);
    case ZYDIS_MNEMONIC_ENTER:
      return enter(e, in);
    case ZYDIS_MNEMONIC_XLAT:
      return xlat(e, in);
    case ZYDIS_MNEMONIC_CLFLUSH:
      return flush_line(e, in);
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD:
      return shift_double(e, in);
    case ZYDIS_MNEMONIC_MOV:
      return move_segment(e, in);
    case ZYDIS_MNEMONIC_PUSH:
      return push_segment(e, in);
    case ZYDIS_MNEMONIC_POP:
      return pop_segment(e, in);
    case ZYDIS_MNEMONIC_LFS:
    case ZYDIS_MNEMONIC_LGS:
    case ZYDIS_MNEMONIC_LSS:
      return load_far_pointer(e, in);
    case ZYDIS_MNEMONIC_LAR:
    case ZYDIS_MNEMONIC_LSL:
    case ZYDIS_MNEMONIC_VERR:
    case ZYDIS_MNEMONIC_VERW:
      return describe_segment(e, in);
    case ZYDIS_MNEMONIC_SGDT:
    case ZYDIS_MNEMONIC_SIDT:
    case ZYDIS_MNEMONIC_SLDT:
    case ZYDIS_MNEMONIC_SMSW:
    case ZYDIS_MNEMONIC_STR:
      return describe_system(e, in);
    default:
      return direct_emulate_float(e, in);
  }
}

enum direct_stop direct_emulate(struct direct_engine *e, const struct direct_insn *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_JMP:
    case ZYDIS_MNEMONIC_CALL:
      return branch_far(e, in);
    case ZYDIS_MNEMONIC_RET:
      return return_far(e, in);
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
      return return_from_interrupt(e, in);
    default:
      break;
  }
  enum direct_stop why = emulate(e, in);
  if (!why) e->context->rip = in->pc + in->length;
  return why;
}
