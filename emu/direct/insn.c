#include "insn.h"

#include "operands.h"

#include <string.h>

// ---- levels -------------------------------------------------------------------

// Reports whether the sets of instructions of the level contain this one.
static bool has_set(enum direct_level level, ZydisISASet set) {
  switch (set) {
    case ZYDIS_ISA_SET_I86:
    case ZYDIS_ISA_SET_I186:
    case ZYDIS_ISA_SET_I286REAL:
    case ZYDIS_ISA_SET_I286PROTECTED:
    case ZYDIS_ISA_SET_I386:
    case ZYDIS_ISA_SET_I486:
    case ZYDIS_ISA_SET_I486REAL:
    case ZYDIS_ISA_SET_PENTIUMREAL:
    case ZYDIS_ISA_SET_PENTIUMMMX:
    case ZYDIS_ISA_SET_PPRO:
    case ZYDIS_ISA_SET_CMOV:
    case ZYDIS_ISA_SET_FCMOV:
    case ZYDIS_ISA_SET_X87:
    case ZYDIS_ISA_SET_LONGMODE:
    case ZYDIS_ISA_SET_FXSAVE:
    case ZYDIS_ISA_SET_FXSAVE64:
    case ZYDIS_ISA_SET_CLFSH:
    case ZYDIS_ISA_SET_PAUSE:
    case ZYDIS_ISA_SET_FAT_NOP:
    case ZYDIS_ISA_SET_PREFETCH_NOP:
    case ZYDIS_ISA_SET_LAHF:
    case ZYDIS_ISA_SET_CMPXCHG16B:
    case ZYDIS_ISA_SET_POPCNT:
    case ZYDIS_ISA_SET_RDTSCP:
    case ZYDIS_ISA_SET_RDPMC:
    case ZYDIS_ISA_SET_SSE:
    case ZYDIS_ISA_SET_SSE2:
    case ZYDIS_ISA_SET_SSE2MMX:
    case ZYDIS_ISA_SET_SSE3:
    case ZYDIS_ISA_SET_SSE3X87:
    case ZYDIS_ISA_SET_SSE4:
    case ZYDIS_ISA_SET_SSE42:
    case ZYDIS_ISA_SET_SSEMXCSR:
    case ZYDIS_ISA_SET_SSE_PREFETCH:
    case ZYDIS_ISA_SET_SSSE3:
    case ZYDIS_ISA_SET_SSSE3MMX:
      return true;
    case ZYDIS_ISA_SET_AVX:
    case ZYDIS_ISA_SET_AVX2:
    case ZYDIS_ISA_SET_AVX2GATHER:
    case ZYDIS_ISA_SET_BMI1:
    case ZYDIS_ISA_SET_BMI2:
    case ZYDIS_ISA_SET_F16C:
    case ZYDIS_ISA_SET_FMA:
    case ZYDIS_ISA_SET_LZCNT:
    case ZYDIS_ISA_SET_MOVBE:
    case ZYDIS_ISA_SET_XSAVE:
      return level >= DIRECT_V3;
    default:
      return false;
  }
}

// Reports whether the level has the instruction as the decoder took it.
static bool has(enum direct_level level, const ZydisDecodedInstruction *in) {
  switch (in->encoding) {
    case ZYDIS_INSTRUCTION_ENCODING_LEGACY:
      break;
    case ZYDIS_INSTRUCTION_ENCODING_VEX:
      if (level < DIRECT_V3) return false;
      break;
    default:
      return false;
  }
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_RSM:
    case ZYDIS_MNEMONIC_SYSENTER:  // of an AMD processor in 64-bit mode
      return false;
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_PREFETCH:
    case ZYDIS_MNEMONIC_PREFETCHW:
      // The prefetches of AMD have an operand in memory.
      return in->opcode != 0x0d || in->opcode_map != ZYDIS_OPCODE_MAP_0F || in->raw.modrm.mod != 3;
    default:
      return has_set(level, in->meta.isa_set);
  }
}

// Reports whether instructions of the set may use x87, MMX, SSE or AVX state.
static bool uses_vectors(ZydisISASet set) {
  switch (set) {
    case ZYDIS_ISA_SET_I86:
    case ZYDIS_ISA_SET_I186:
    case ZYDIS_ISA_SET_I286REAL:
    case ZYDIS_ISA_SET_I286PROTECTED:
    case ZYDIS_ISA_SET_I386:
    case ZYDIS_ISA_SET_I486:
    case ZYDIS_ISA_SET_I486REAL:
    case ZYDIS_ISA_SET_PENTIUMREAL:
    case ZYDIS_ISA_SET_CMOV:
    case ZYDIS_ISA_SET_LONGMODE:
    case ZYDIS_ISA_SET_CLFSH:
    case ZYDIS_ISA_SET_PAUSE:
    case ZYDIS_ISA_SET_FAT_NOP:
    case ZYDIS_ISA_SET_PREFETCH_NOP:
    case ZYDIS_ISA_SET_LAHF:
    case ZYDIS_ISA_SET_CMPXCHG16B:
    case ZYDIS_ISA_SET_POPCNT:
    case ZYDIS_ISA_SET_RDTSCP:
    case ZYDIS_ISA_SET_RDPMC:
    case ZYDIS_ISA_SET_BMI1:
    case ZYDIS_ISA_SET_BMI2:
    case ZYDIS_ISA_SET_LZCNT:
    case ZYDIS_ISA_SET_MOVBE:
      return false;
    default:
      return true;
  }
}

// The decoder of a level. Code of an instruction that the level lacks, and that a processor without it takes for
// another one, is that other one here, too: LZCNT for BSR, MPX and CET for NOP.
static const ZydisDecoder *decoder(enum direct_level level) {
  static ZydisDecoder decoders[2];
  static bool ready;
  if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
    for (int i = 0; i < 2; i++) {
      ZydisDecoder d;
      ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
      ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_AMD_BRANCHES, ZYAN_TRUE);
      ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE);
      ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_CET, ZYAN_FALSE);
      ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_CLDEMOTE, ZYAN_FALSE);
      ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_WBNOINVD, ZYAN_FALSE);
      ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_LZCNT, i >= DIRECT_V3);
      ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_TZCNT, i >= DIRECT_V3);
      decoders[i] = d;
    }
    __atomic_store_n(&ready, true, __ATOMIC_RELEASE);
  }
  return &decoders[level];
}

// ---- costs and kinds ----------------------------------------------------------

static bool touches_memory(const ZydisDecodedInstruction *in) {
  if ((in->attributes & ZYDIS_ATTRIB_HAS_MODRM) && in->raw.modrm.mod != 3)
    return in->mnemonic != ZYDIS_MNEMONIC_LEA && in->mnemonic != ZYDIS_MNEMONIC_NOP;
  switch (in->meta.category) {
    case ZYDIS_CATEGORY_PUSH:
    case ZYDIS_CATEGORY_POP:
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_STRINGOP:
      return true;
    default:
      return false;
  }
}

static bool is_atomic(const ZydisDecodedInstruction *in) {
  if (in->attributes & ZYDIS_ATTRIB_HAS_LOCK) return true;
  return in->mnemonic == ZYDIS_MNEMONIC_XCHG && in->raw.modrm.mod != 3 && (in->attributes & ZYDIS_ATTRIB_HAS_MODRM);
}

static uint32_t cost_of(const struct direct_costs *c, const ZydisDecodedInstruction *in) {
  uint32_t cost = c->instruction;
  if (touches_memory(in)) cost += c->memory;
  if (in->meta.category == ZYDIS_CATEGORY_CALL || in->meta.category == ZYDIS_CATEGORY_RET) cost += c->check;
  if (is_atomic(in)) return cost + c->atomic;
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV:
    case ZYDIS_MNEMONIC_FDIV:
    case ZYDIS_MNEMONIC_FDIVP:
    case ZYDIS_MNEMONIC_FDIVR:
    case ZYDIS_MNEMONIC_FDIVRP:
    case ZYDIS_MNEMONIC_FIDIV:
    case ZYDIS_MNEMONIC_FIDIVR:
    case ZYDIS_MNEMONIC_DIVSD:
    case ZYDIS_MNEMONIC_DIVSS:
    case ZYDIS_MNEMONIC_DIVPD:
    case ZYDIS_MNEMONIC_DIVPS:
    case ZYDIS_MNEMONIC_VDIVSD:
    case ZYDIS_MNEMONIC_VDIVSS:
    case ZYDIS_MNEMONIC_VDIVPD:
    case ZYDIS_MNEMONIC_VDIVPS:
      return cost + c->divide;
    case ZYDIS_MNEMONIC_FSQRT:
    case ZYDIS_MNEMONIC_SQRTSD:
    case ZYDIS_MNEMONIC_SQRTSS:
    case ZYDIS_MNEMONIC_SQRTPD:
    case ZYDIS_MNEMONIC_SQRTPS:
    case ZYDIS_MNEMONIC_VSQRTSD:
    case ZYDIS_MNEMONIC_VSQRTSS:
    case ZYDIS_MNEMONIC_VSQRTPD:
    case ZYDIS_MNEMONIC_VSQRTPS:
      return cost + c->sqrt;
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_SFENCE:
    case ZYDIS_MNEMONIC_LFENCE:
      return cost + c->fence;
    case ZYDIS_MNEMONIC_FSIN:
    case ZYDIS_MNEMONIC_FCOS:
    case ZYDIS_MNEMONIC_FSINCOS:
    case ZYDIS_MNEMONIC_FPTAN:
    case ZYDIS_MNEMONIC_FPATAN:
    case ZYDIS_MNEMONIC_F2XM1:
    case ZYDIS_MNEMONIC_FYL2X:
    case ZYDIS_MNEMONIC_FYL2XP1:
      return cost + c->transcendental;
    default:
      return cost;
  }
}

static bool is_repeated(const ZydisDecodedInstruction *in) {
  return in->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

static enum direct_kind kind_of(const ZydisDecodedInstruction *in) {
  if (in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return KIND_NONE;
  bool indirect = in->attributes & ZYDIS_ATTRIB_HAS_MODRM;
  switch (in->meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      return KIND_COND;
    case ZYDIS_CATEGORY_UNCOND_BR:
      return indirect ? KIND_JUMP : KIND_NONE;
    case ZYDIS_CATEGORY_CALL:
      return indirect ? KIND_CALL_IND : KIND_CALL;
    case ZYDIS_CATEGORY_RET:
      return in->mnemonic == ZYDIS_MNEMONIC_RET ? KIND_RET : KIND_NONE;
    default:
      return is_repeated(in) ? KIND_REP : KIND_NONE;
  }
}

// ---- classes ------------------------------------------------------------------

static bool has_segment_register(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops) {
  for (int i = 0; i < in->operand_count_visible; i++)
    if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
        ZydisRegisterGetClass(ops[i].reg.value) == ZYDIS_REGCLASS_SEGMENT)
      return true;
  return false;
}

// The class of an instruction that the level has.
static enum direct_class class_of(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops) {
  switch (in->meta.category) {
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
      return CLASS_PRIVILEGED;
    case ZYDIS_CATEGORY_STRINGOP:
      return CLASS_STRING;
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
      return in->mnemonic == ZYDIS_MNEMONIC_FNOP ? CLASS_NATIVE : CLASS_NOTHING;
    case ZYDIS_CATEGORY_PREFETCH:
      return in->meta.isa_set == ZYDIS_ISA_SET_SSE_PREFETCH && in->raw.modrm.mod != 3 ? CLASS_PREFETCH : CLASS_NOTHING;
    default:
      break;
  }
  if (in->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) return CLASS_PRIVILEGED;
  bool direct = in->operand_count && ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_CLI:
    case ZYDIS_MNEMONIC_STI:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_RDPMC:
    case ZYDIS_MNEMONIC_XSETBV:
    case ZYDIS_MNEMONIC_LGDT:
    case ZYDIS_MNEMONIC_LIDT:
    case ZYDIS_MNEMONIC_LLDT:
    case ZYDIS_MNEMONIC_LTR:
    case ZYDIS_MNEMONIC_LMSW:
      return CLASS_PRIVILEGED;
    case ZYDIS_MNEMONIC_PAUSE:
      return CLASS_PAUSE;
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_SFENCE:
    case ZYDIS_MNEMONIC_LFENCE:
      return CLASS_NOTHING;
    case ZYDIS_MNEMONIC_JMP:
      if (in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return CLASS_EMULATED;
      return direct ? CLASS_JUMP : CLASS_JUMP_TO;
    case ZYDIS_MNEMONIC_CALL:
      if (in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return CLASS_EMULATED;
      return direct ? CLASS_CALL : CLASS_CALL_TO;
    case ZYDIS_MNEMONIC_RET:
      return in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? CLASS_EMULATED : CLASS_RETURN;
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
    case ZYDIS_MNEMONIC_JCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JRCXZ:
      return CLASS_LOOP;
    case ZYDIS_MNEMONIC_PUSH:
      return has_segment_register(in, ops) ? CLASS_EMULATED : CLASS_PUSH;
    case ZYDIS_MNEMONIC_POP:
      return has_segment_register(in, ops) ? CLASS_EMULATED : CLASS_POP;
    case ZYDIS_MNEMONIC_LEAVE:
      return CLASS_LEAVE;
    case ZYDIS_MNEMONIC_SYSCALL:
      return CLASS_SYSCALL;
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
      return CLASS_INTERRUPT;
    case ZYDIS_MNEMONIC_MOV:
      return has_segment_register(in, ops) ? CLASS_EMULATED : CLASS_NATIVE;
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD:
      // Undefined for counts beyond 16, and processors differ.
      return in->operand_width == 16 ? CLASS_EMULATED : CLASS_NATIVE;
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFQ:
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_CLD:
    case ZYDIS_MNEMONIC_STD:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_XGETBV:
    case ZYDIS_MNEMONIC_LAR:
    case ZYDIS_MNEMONIC_LSL:
    case ZYDIS_MNEMONIC_LFS:
    case ZYDIS_MNEMONIC_LGS:
    case ZYDIS_MNEMONIC_LSS:
    case ZYDIS_MNEMONIC_SGDT:
    case ZYDIS_MNEMONIC_SIDT:
    case ZYDIS_MNEMONIC_SLDT:
    case ZYDIS_MNEMONIC_SMSW:
    case ZYDIS_MNEMONIC_STR:
    case ZYDIS_MNEMONIC_VERR:
    case ZYDIS_MNEMONIC_VERW:
    case ZYDIS_MNEMONIC_XLAT:
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ:
    case ZYDIS_MNEMONIC_VGATHERDPS:
    case ZYDIS_MNEMONIC_VGATHERDPD:
    case ZYDIS_MNEMONIC_VGATHERQPS:
    case ZYDIS_MNEMONIC_VGATHERQPD:
    case ZYDIS_MNEMONIC_VPGATHERDD:
    case ZYDIS_MNEMONIC_VPGATHERDQ:
    case ZYDIS_MNEMONIC_VPGATHERQD:
    case ZYDIS_MNEMONIC_VPGATHERQQ:
    case ZYDIS_MNEMONIC_LDMXCSR:
    case ZYDIS_MNEMONIC_VLDMXCSR:
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
    case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FRSTOR:
    case ZYDIS_MNEMONIC_FNSTENV:
    case ZYDIS_MNEMONIC_FLDENV:
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
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
    case ZYDIS_MNEMONIC_RCPPS:
    case ZYDIS_MNEMONIC_RCPSS:
    case ZYDIS_MNEMONIC_RSQRTPS:
    case ZYDIS_MNEMONIC_RSQRTSS:
    case ZYDIS_MNEMONIC_VRCPPS:
    case ZYDIS_MNEMONIC_VRCPSS:
    case ZYDIS_MNEMONIC_VRSQRTPS:
    case ZYDIS_MNEMONIC_VRSQRTSS:
      return CLASS_EMULATED;
    default:
      break;
  }
  if (in->meta.category == ZYDIS_CATEGORY_COND_BR) return CLASS_JUMP_IF;
  return CLASS_NATIVE;
}

// ---- flags ----------------------------------------------------------------------

static bool shifts(ZydisMnemonic m) { return m == ZYDIS_MNEMONIC_SHL || m == ZYDIS_MNEMONIC_SHR || m == ZYDIS_MNEMONIC_SAR; }

static bool rotates(ZydisMnemonic m) {
  return m == ZYDIS_MNEMONIC_ROL || m == ZYDIS_MNEMONIC_ROR || m == ZYDIS_MNEMONIC_RCL || m == ZYDIS_MNEMONIC_RCR;
}

// The flags of shifts and rotations. The count is known unless it is in CL.
static void shift_flags(struct direct_insn *in, bool by_cl, unsigned count) {
  bool rotation = rotates(in->mnemonic), through = in->mnemonic == ZYDIS_MNEMONIC_RCL || in->mnemonic == ZYDIS_MNEMONIC_RCR;
  count &= in->width == 8 ? 63 : 31;
  in->flags_read = through ? FLAG_CF : 0;
  in->flags_undefined = 0;
  if (!by_cl && !count) {
    in->flags_set = 0;
    return;
  }
  in->flags_set = rotation ? FLAG_CF : FLAG_CF | FLAG_PF | FLAG_ZF | FLAG_SF;
  if (!rotation) in->flags_undefined |= FLAG_AF;
  if (by_cl) {
    in->what |= INSN_FLAGS_BY_COUNT;
    in->flags_read |= rotation ? FLAG_CF | FLAG_OF : FLAGS_ARITHMETIC;
    in->flags_undefined |= FLAG_OF;
    return;
  }
  if (count == 1) in->flags_set |= FLAG_OF;
  else in->flags_undefined |= FLAG_OF;
  bool beyond = count >= 8u * in->width;
  if (beyond && (in->mnemonic == ZYDIS_MNEMONIC_SHL || in->mnemonic == ZYDIS_MNEMONIC_SHR)) {
    in->flags_set &= (uint16_t)~FLAG_CF;
    in->flags_undefined |= FLAG_CF;
  }
}

static void find_flags(struct direct_insn *in, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops) {
  const ZydisAccessedFlags *f = z->cpu_flags;
  if (!f) return;
  in->flags_read = f->tested & FLAGS_ARITHMETIC;
  in->flags_undefined = f->undefined & FLAGS_ARITHMETIC;
  in->flags_set = (f->modified | f->set_0 | f->set_1) & FLAGS_ARITHMETIC & ~f->undefined;
  switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_TEST:
      // AF is undefined by the manuals, and 0 after these on every processor.
      in->flags_set |= FLAG_AF;
      in->flags_undefined = 0;
      return;
    case ZYDIS_MNEMONIC_SBB:
      // AF is the borrow from bit 4 (SDM volume 2, SBB), and undefined in Zydis 4.0.
      in->flags_set |= FLAG_AF;
      in->flags_undefined = 0;
      return;
    case ZYDIS_MNEMONIC_BEXTR:
      // CF and OF are 0 (SDM volume 2, BEXTR), and undefined in Zydis 4.0.
      in->flags_set |= FLAG_CF | FLAG_OF;
      in->flags_undefined &= ~(FLAG_CF | FLAG_OF);
      return;
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD:
      shift_flags(in, ops[2].type == ZYDIS_OPERAND_TYPE_REGISTER, (unsigned)ops[2].imm.value.u);
      return;
    default:
      if (shifts(z->mnemonic) || rotates(z->mnemonic))
        shift_flags(in, ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER, (unsigned)ops[1].imm.value.u);
  }
}

// ---- operands -------------------------------------------------------------------

// The number of a general register, or NO_REGISTER.
static unsigned number_of(ZydisRegister r) {
  if (r >= ZYDIS_REGISTER_AL && r <= ZYDIS_REGISTER_BL) return (unsigned)(r - ZYDIS_REGISTER_AL);
  if (r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH) return (unsigned)(r - ZYDIS_REGISTER_AH);
  if (r >= ZYDIS_REGISTER_SPL && r <= ZYDIS_REGISTER_R15B) return (unsigned)(r - ZYDIS_REGISTER_SPL) + RSP;
  if (r >= ZYDIS_REGISTER_AX && r <= ZYDIS_REGISTER_R15W) return (unsigned)(r - ZYDIS_REGISTER_AX);
  if (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D) return (unsigned)(r - ZYDIS_REGISTER_EAX);
  if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15) return (unsigned)(r - ZYDIS_REGISTER_RAX);
  return NO_REGISTER;
}

static void add_register(struct direct_insn *in, const ZydisDecodedOperand *o) {
  ZydisRegister reg = o->reg.value;
  unsigned r = number_of(reg);
  if (r == NO_REGISTER) return;
  if (reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH) in->what |= INSN_HIGH_BYTE;
  if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) in->reads |= REGISTER_BIT(r);
  if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) in->writes |= REGISTER_BIT(r);
  bool partial = o->size < 32 || (o->actions & (ZYDIS_OPERAND_ACTION_CONDREAD | ZYDIS_OPERAND_ACTION_CONDWRITE));
  if (partial && (in->writes & REGISTER_BIT(r))) in->reads |= REGISTER_BIT(r);
}

static void add_address_register(struct direct_insn *in, unsigned r) {
  if (r == NO_REGISTER) return;
  in->reads |= REGISTER_BIT(r);
  in->address_reads |= REGISTER_BIT(r);
}

static void add_memory(struct direct_insn *in, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o) {
  add_address_register(in, number_of(o->mem.base));
  add_address_register(in, number_of(o->mem.index));
  struct direct_operand *m = &in->memory;
  if (o->mem.segment == ZYDIS_REGISTER_FS) m->segment = SEGMENT_FS;
  if (o->mem.segment == ZYDIS_REGISTER_GS) m->segment = SEGMENT_GS;
  if (o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN || in->class == CLASS_STRING) return;
  m->base = (uint8_t)number_of(o->mem.base);
  m->index = (uint8_t)number_of(o->mem.index);
  if (o->mem.type == ZYDIS_MEMOP_TYPE_VSIB) m->index = (uint8_t)ZydisRegisterGetId(o->mem.index);
  m->scale = o->mem.scale ? o->mem.scale : 1;
  m->narrow = z->address_width == 32;
  if (o->mem.disp.has_displacement) m->disp = o->mem.disp.value;
  if (o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP) m->disp += (int64_t)(in->pc + in->length);
  if (o->mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
    in->what |= INSN_ADDRESS;
    m->segment = SEGMENT_NONE;
    return;
  }
  if (o->mem.segment == ZYDIS_REGISTER_SS) in->what |= INSN_STACK;
  in->what |= INSN_MEMORY;
  if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) in->what |= INSN_LOADS;
  if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) in->what |= INSN_STORES;
  in->size = (uint8_t)(o->size / 8 < 256 ? o->size / 8 : 0);
}

// Reports whether an operand in memory must be aligned to its size.
static bool must_align(const ZydisDecodedInstruction *z, const struct direct_insn *in) {
  if (in->size < 16) return false;
  switch (z->meta.exception_class) {
    case ZYDIS_EXCEPTION_CLASS_SSE1:
    case ZYDIS_EXCEPTION_CLASS_AVX1:
      return true;
    case ZYDIS_EXCEPTION_CLASS_SSE2:
    case ZYDIS_EXCEPTION_CLASS_SSE4:
      break;
    default:
      return z->mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B || z->mnemonic == ZYDIS_MNEMONIC_CVTPD2PI || z->mnemonic == ZYDIS_MNEMONIC_CVTTPD2PI;
  }
  switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_LDDQU:
    case ZYDIS_MNEMONIC_PCMPESTRI:
    case ZYDIS_MNEMONIC_PCMPESTRM:
    case ZYDIS_MNEMONIC_PCMPISTRI:
    case ZYDIS_MNEMONIC_PCMPISTRM:
      return false;
    default:
      return true;
  }
}

static void find_operands(struct direct_insn *in, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops) {
  in->memory.base = in->memory.index = NO_REGISTER;
  in->memory.scale = 1;
  int immediates = 0;
  for (int i = 0; i < z->operand_count; i++) {
    const ZydisDecodedOperand *o = &ops[i];
    switch (o->type) {
      case ZYDIS_OPERAND_TYPE_REGISTER:
        add_register(in, o);
        break;
      case ZYDIS_OPERAND_TYPE_MEMORY:
        add_memory(in, z, o);
        break;
      case ZYDIS_OPERAND_TYPE_IMMEDIATE:
        if (o->imm.is_relative) in->target = in->pc + in->length + (uint64_t)o->imm.value.s;
        if (immediates++) in->imm2 = o->imm.value.s;
        else in->imm = o->imm.value.s;
        break;
      default:
        break;
    }
  }
  bool tests = z->mnemonic == ZYDIS_MNEMONIC_BT || z->mnemonic == ZYDIS_MNEMONIC_BTS || z->mnemonic == ZYDIS_MNEMONIC_BTR ||
               z->mnemonic == ZYDIS_MNEMONIC_BTC;
  if (tests && (in->what & INSN_MEMORY) && ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER) in->what |= INSN_BIT_STRING;
  if ((in->what & INSN_MEMORY) && must_align(z, in)) in->what |= INSN_ALIGNED;
}

// ---- encodings --------------------------------------------------------------------

static void find_prefixes(struct direct_insn *in, const ZydisDecodedInstruction *z) {
  for (unsigned i = 0; i < z->raw.prefix_count; i++) {
    uint8_t value = z->raw.prefixes[i].value;
    if (z->raw.prefixes[i].type == ZYDIS_PREFIX_TYPE_IGNORED) continue;
    if (value == 0x66) in->operand16 = true;
    bool matters = z->raw.prefixes[i].type == ZYDIS_PREFIX_TYPE_MANDATORY || in->class == CLASS_STRING;
    if ((value == 0xf2 || value == 0xf3) && matters) in->repeat = value;
  }
}

// MOV between the accumulator and an address of 8 bytes, as MOV with ModRM.
static void normalize_offset(struct direct_insn *in) {
  static const uint8_t opcodes[] = {0x8a, 0x8b, 0x88, 0x89};
  in->opcode = opcodes[in->opcode & 3];
  in->has_modrm = true;
  in->modrm = 0;
  in->suffix = 0;
}

static void find_encoding(struct direct_insn *in, const ZydisDecodedInstruction *z) {
  in->opcode = z->opcode;
  in->has_modrm = z->attributes & ZYDIS_ATTRIB_HAS_MODRM;
  if (in->has_modrm) in->modrm = (uint8_t)(z->raw.modrm.mod << 6 | z->raw.modrm.reg << 3 | z->raw.modrm.rm);
  switch (z->opcode_map) {
    case ZYDIS_OPCODE_MAP_0F:
      in->opcode_map = 1;
      break;
    case ZYDIS_OPCODE_MAP_0F38:
      in->opcode_map = 2;
      break;
    case ZYDIS_OPCODE_MAP_0F3A:
      in->opcode_map = 3;
      break;
    default:
      in->opcode_map = 0;
  }
  in->suffix = (uint8_t)((z->raw.imm[0].size + z->raw.imm[1].size) / 8);
  if (z->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX) {
    in->vex = true;
    in->w = z->raw.vex.W;
    in->r = !z->raw.vex.R;
    in->x = !z->raw.vex.X;
    in->b = !z->raw.vex.B;
    in->vvvv = (uint8_t)(15 - z->raw.vex.vvvv);
    in->l = z->raw.vex.L;
    in->pp = z->raw.vex.pp;
    return;
  }
  find_prefixes(in, z);
  if (z->attributes & ZYDIS_ATTRIB_HAS_REX) {
    in->has_rex = true;
    in->w = z->raw.rex.W;
    in->r = z->raw.rex.R;
    in->x = z->raw.rex.X;
    in->b = z->raw.rex.B;
  }
  if (in->opcode_map == 0 && in->opcode >= 0xa0 && in->opcode <= 0xa3) normalize_offset(in);
}

// An operand size of 16 bits cuts the target of a branch, which AMD's processors do and Intel's
// do not.
static void cut_target(struct direct_insn *in, const ZydisDecodedInstruction *z) {
  for (unsigned i = 0; i < z->raw.prefix_count; i++)
    if (z->raw.prefixes[i].value == 0x66 && !in->w) in->target = (uint16_t)in->target;
}

static uint32_t attributes_of(const ZydisDecodedInstruction *z) {
  uint32_t what = 0;
  if (is_atomic(z)) what |= INSN_ATOMIC;
  if (is_repeated(z)) what |= INSN_REPEATED;
  if (z->attributes & ZYDIS_ATTRIB_HAS_REPNE) what |= INSN_REPNE;
  if (z->mnemonic == ZYDIS_MNEMONIC_MFENCE || z->mnemonic == ZYDIS_MNEMONIC_SFENCE || z->mnemonic == ZYDIS_MNEMONIC_LFENCE)
    what |= INSN_FENCE;
  if (uses_vectors(z->meta.isa_set)) what |= INSN_FLOAT;
  return what;
}

// Zydis takes XCHG R8, RAX with a prefix F3 for PAUSE, and so finds no operands: it is
// decoded again with CS, which does nothing there, in place of that prefix.
static ZyanStatus decode(enum direct_level level, const uint8_t *bytes, size_t n, ZydisDecodedInstruction *z,
                         ZydisDecodedOperand *ops) {
  ZyanStatus status = ZydisDecoderDecodeFull(decoder(level), bytes, n, z, ops);
  if (!ZYAN_SUCCESS(status) || z->mnemonic != ZYDIS_MNEMONIC_PAUSE || !z->raw.rex.B) return status;
  uint8_t changed[ZYDIS_MAX_INSTRUCTION_LENGTH];
  memcpy(changed, bytes, z->length);
  for (unsigned i = 0; i < z->raw.prefix_count; i++)
    if (changed[i] == 0xf3) changed[i] = 0x2e;
  return ZydisDecoderDecodeFull(decoder(level), changed, z->length, z, ops);
}

enum direct_decoded direct_decode(enum direct_level level, const struct direct_costs *costs, const uint8_t *bytes,
                                  size_t n, uint64_t pc, struct direct_insn *out) {
  ZydisDecodedInstruction z;
  ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
  memset(out, 0, sizeof *out);
  out->pc = pc;
  out->cost = costs->instruction;
  ZyanStatus status = decode(level, bytes, n, &z, ops);
  if (status == ZYDIS_STATUS_NO_MORE_DATA && n < ZYDIS_MAX_INSTRUCTION_LENGTH) return DECODED_CUT;
  if (!ZYAN_SUCCESS(status)) {
    bool too_long = status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG || status == ZYDIS_STATUS_NO_MORE_DATA;
    out->class = too_long ? CLASS_PRIVILEGED : CLASS_INVALID;
    return DECODED_INVALID;
  }
  out->length = z.length;
  out->mnemonic = (uint16_t)z.mnemonic;
  out->width = z.operand_width / 8;
  out->address = z.address_width / 8;
  memcpy(out->bytes, bytes, z.length);
  if (!has(level, &z)) {
    out->class = CLASS_INVALID;
    return DECODED_INVALID;
  }
  out->class = class_of(&z, ops);
  out->kind = kind_of(&z);
  out->cost = cost_of(costs, &z);
  out->what = attributes_of(&z);
  out->order = (uint8_t)heddle_order_of(&z);
  find_operands(out, &z, ops);
  find_flags(out, &z, ops);
  find_encoding(out, &z);
  cut_target(out, &z);
  return DECODED;
}
