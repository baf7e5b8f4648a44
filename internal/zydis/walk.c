#include "walk.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>

static uint32_t far_or_straight(const ZydisDecodedInstruction *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_INTO:
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_SYSEXIT:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
      return HEDDLE_FAR;
    default:
      return HEDDLE_STRAIGHT;
  }
}

static uint32_t branch_kind(const ZydisDecodedInstruction *in, int64_t *relative) {
  bool direct = in->raw.imm[0].size != 0 && in->raw.imm[0].is_relative;
  if (in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return HEDDLE_FAR;
  if (direct) *relative = in->raw.imm[0].value.s;
  switch (in->meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      // XBEGIN branches to its target only when a transaction aborts.
      return in->mnemonic == ZYDIS_MNEMONIC_XBEGIN ? HEDDLE_STRAIGHT : HEDDLE_CONDITIONAL;
    case ZYDIS_CATEGORY_UNCOND_BR:
      if (in->mnemonic != ZYDIS_MNEMONIC_JMP) return HEDDLE_STRAIGHT;
      return direct ? HEDDLE_JUMP : HEDDLE_INDIRECT_JUMP;
    case ZYDIS_CATEGORY_CALL:
      if (in->mnemonic != ZYDIS_MNEMONIC_CALL) break;
      return direct ? HEDDLE_CALL : HEDDLE_INDIRECT_CALL;
    case ZYDIS_CATEGORY_RET:
      if (in->mnemonic == ZYDIS_MNEMONIC_RET) return HEDDLE_RETURN;
      break;
    default:
      break;
  }
  return far_or_straight(in);
}

void heddle_walk(const uint8_t *code, size_t n, uint8_t *lengths, size_t max, struct heddle_walk *out) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  *out = (struct heddle_walk){.kind = HEDDLE_STRAIGHT};
  while (out->count < max && out->kind == HEDDLE_STRAIGHT) {
    ZydisDecodedInstruction in;
    ZyanStatus status = ZydisDecoderDecodeInstruction(&decoder, NULL, code + out->bytes, n - out->bytes, &in);
    if (!ZYAN_SUCCESS(status)) {
      out->kind = status == ZYDIS_STATUS_NO_MORE_DATA ? HEDDLE_SHORT : HEDDLE_INVALID;
      return;
    }
    lengths[out->count++] = in.length;
    out->bytes += in.length;
    out->kind = branch_kind(&in, &out->relative);
  }
}
