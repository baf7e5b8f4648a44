#include <Zydis/Zydis.h>
#include <string.h>

#include "walk.h"

uint32_t heddle_instruction(const uint8_t *code, size_t n, uint64_t address, struct heddle_instruction *out) {
  ZydisDecoder decoder;
  ZydisDecodedInstruction in;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  memset(out, 0, sizeof *out);
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, n, &in, operands))) return 0;
  if (in.cpu_flags) {
    out->written = in.cpu_flags->modified | in.cpu_flags->set_0 | in.cpu_flags->set_1;
    out->undefined = in.cpu_flags->undefined;
  }
  const char *extension = ZydisISAExtGetString(in.meta.isa_ext);
  if (extension) strncpy(out->extension, extension, sizeof out->extension - 1);
  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  ZydisFormatterFormatInstruction(&formatter, &in, operands, in.operand_count_visible, out->text, sizeof out->text,
                                  address, ZYAN_NULL);
  return in.length;
}
