#include "lift.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/libvex.h>
#include <valgrind/libvex_guest_amd64.h>
#include <valgrind/libvex_ir.h>

// The text that the library prints, and where it jumps when it gives up.
static char printed[256];
static size_t nprinted;
static jmp_buf gave_up;

// If there is no room, the first bytes are kept.
static void log_bytes(const HChar *text, SizeT n) {
  size_t room = sizeof printed - 1 - nprinted;
  if (n > room) n = room;
  memcpy(printed + nprinted, text, n);
  nprinted += n;
}

static __attribute__((noreturn)) void give_up(void) { longjmp(gave_up, 1); }

static void init_library(void) {
  static bool done;
  if (done) return;
  VexControl control;
  LibVEX_default_VexControl(&control);
  control.iropt_level = 1;
  control.iropt_unroll_thresh = 0;
  control.guest_chase = False;
  control.guest_max_insns = 99;
  LibVEX_Init(give_up, log_bytes, 0, &control);
  done = true;
}

static Bool never_chase(void *opaque, Addr to) {
  (void)opaque;
  (void)to;
  return False;
}

static UInt no_self_check(void *opaque, VexRegisterUpdates *control, const VexGuestExtents *extents) {
  (void)opaque;
  (void)control;
  (void)extents;
  return 0;
}

static void write_word(struct heddle_words *w, uint64_t value) {
  if (w->n == w->room) {
    w->room = w->room ? 2 * w->room : 256;
    w->at = realloc(w->at, w->room * sizeof *w->at);
    if (!w->at) abort();
  }
  w->at[w->n++] = value;
}

static void write_constant(struct heddle_words *w, const IRConst *c) {
  write_word(w, typeOfIRConst(c) - Ity_INVALID);
  switch (c->tag) {
    case Ico_U1: write_word(w, c->Ico.U1 != 0); break;
    case Ico_U8: write_word(w, c->Ico.U8); break;
    case Ico_U16: write_word(w, c->Ico.U16); break;
    case Ico_U32: write_word(w, c->Ico.U32); break;
    case Ico_U64: write_word(w, c->Ico.U64); break;
    case Ico_F32: {
      uint32_t bits;
      memcpy(&bits, &c->Ico.F32, sizeof bits);
      write_word(w, bits);
      break;
    }
    case Ico_F32i: write_word(w, c->Ico.F32i); break;
    case Ico_F64: {
      uint64_t bits;
      memcpy(&bits, &c->Ico.F64, sizeof bits);
      write_word(w, bits);
      break;
    }
    case Ico_F64i: write_word(w, c->Ico.F64i); break;
    case Ico_U128: write_word(w, c->Ico.U128); break;
    case Ico_V128: write_word(w, c->Ico.V128); break;
    case Ico_V256: write_word(w, c->Ico.V256); break;
  }
}

static void write_array(struct heddle_words *w, const IRRegArray *a) {
  write_word(w, (uint64_t)a->base);
  write_word(w, a->elemTy - Ity_INVALID);
  write_word(w, (uint64_t)a->nElems);
}

static void write_expr(struct heddle_words *w, const IRExpr *e);

static void write_optional(struct heddle_words *w, const IRExpr *e) {
  write_word(w, e != NULL);
  if (e) write_expr(w, e);
}

static void write_callee(struct heddle_words *w, const IRCallee *c, IRExpr *const *args) {
  write_word(w, (uintptr_t)c->name);
  size_t n = 0;
  while (args[n]) n++;
  write_word(w, n);
  for (size_t i = 0; i < n; i++) write_expr(w, args[i]);
}

static void write_operation(struct heddle_words *w, IROp op, unsigned n, IRExpr *const *args) {
  write_word(w, op - Iop_INVALID);
  write_word(w, n);
  for (unsigned i = 0; i < n; i++) write_expr(w, args[i]);
}

static void write_expr(struct heddle_words *w, const IRExpr *e) {
  // All operations have one form.
  bool op = e->tag == Iex_Qop || e->tag == Iex_Triop || e->tag == Iex_Binop;
  write_word(w, (op ? Iex_Unop : e->tag) - Iex_Binder);
  switch (e->tag) {
    case Iex_Get:
      write_word(w, (uint64_t)e->Iex.Get.offset);
      write_word(w, e->Iex.Get.ty - Ity_INVALID);
      return;
    case Iex_GetI:
      write_array(w, e->Iex.GetI.descr);
      write_expr(w, e->Iex.GetI.ix);
      write_word(w, (uint64_t)e->Iex.GetI.bias);
      return;
    case Iex_RdTmp:
      write_word(w, e->Iex.RdTmp.tmp);
      return;
    case Iex_Qop: {
      const IRQop *q = e->Iex.Qop.details;
      write_operation(w, q->op, 4, (IRExpr *[]){q->arg1, q->arg2, q->arg3, q->arg4});
      return;
    }
    case Iex_Triop: {
      const IRTriop *t = e->Iex.Triop.details;
      write_operation(w, t->op, 3, (IRExpr *[]){t->arg1, t->arg2, t->arg3});
      return;
    }
    case Iex_Binop:
      write_operation(w, e->Iex.Binop.op, 2, (IRExpr *[]){e->Iex.Binop.arg1, e->Iex.Binop.arg2});
      return;
    case Iex_Unop:
      write_operation(w, e->Iex.Unop.op, 1, (IRExpr *[]){e->Iex.Unop.arg});
      return;
    case Iex_Load:
      write_word(w, e->Iex.Load.ty - Ity_INVALID);
      write_expr(w, e->Iex.Load.addr);
      return;
    case Iex_Const:
      write_constant(w, e->Iex.Const.con);
      return;
    case Iex_ITE:
      write_expr(w, e->Iex.ITE.cond);
      write_expr(w, e->Iex.ITE.iftrue);
      write_expr(w, e->Iex.ITE.iffalse);
      return;
    case Iex_CCall:
      write_word(w, e->Iex.CCall.retty - Ity_INVALID);
      write_callee(w, e->Iex.CCall.cee, e->Iex.CCall.args);
      return;
    case Iex_VECRET:
    case Iex_GSPTR:
    case Iex_Binder:
      return;
  }
}

// A temporary, or -1.
static void write_temporary(struct heddle_words *w, IRTemp t) { write_word(w, t == IRTemp_INVALID ? UINT64_MAX : t); }

static void write_dirty(struct heddle_words *w, const IRDirty *d) {
  write_temporary(w, d->tmp);
  write_expr(w, d->guard);
  write_callee(w, d->cee, d->args);
  write_word(w, d->mFx);
  write_word(w, (uint64_t)d->mSize);
  write_optional(w, d->mAddr);
  write_word(w, (uint64_t)d->nFxState);
  for (int i = 0; i < d->nFxState; i++) {
    write_word(w, d->fxState[i].fx);
    write_word(w, d->fxState[i].offset);
    write_word(w, d->fxState[i].size);
    write_word(w, d->fxState[i].nRepeats);
    write_word(w, d->fxState[i].repeatLen);
  }
}

static void write_cas(struct heddle_words *w, const IRCAS *c) {
  write_temporary(w, c->oldHi);
  write_temporary(w, c->oldLo);
  write_expr(w, c->addr);
  write_optional(w, c->expdHi);
  write_expr(w, c->expdLo);
  write_optional(w, c->dataHi);
  write_expr(w, c->dataLo);
}

static void write_statement(struct heddle_words *w, const IRStmt *s) {
  write_word(w, s->tag - Ist_NoOp);
  switch (s->tag) {
    case Ist_IMark:
      write_word(w, s->Ist.IMark.addr);
      write_word(w, s->Ist.IMark.len);
      return;
    case Ist_Put:
      write_word(w, (uint64_t)s->Ist.Put.offset);
      write_expr(w, s->Ist.Put.data);
      return;
    case Ist_PutI:
      write_array(w, s->Ist.PutI.details->descr);
      write_expr(w, s->Ist.PutI.details->ix);
      write_word(w, (uint64_t)s->Ist.PutI.details->bias);
      write_expr(w, s->Ist.PutI.details->data);
      return;
    case Ist_WrTmp:
      write_word(w, s->Ist.WrTmp.tmp);
      write_expr(w, s->Ist.WrTmp.data);
      return;
    case Ist_Store:
      write_expr(w, s->Ist.Store.addr);
      write_expr(w, s->Ist.Store.data);
      return;
    case Ist_StoreG:
      write_expr(w, s->Ist.StoreG.details->guard);
      write_expr(w, s->Ist.StoreG.details->addr);
      write_expr(w, s->Ist.StoreG.details->data);
      return;
    case Ist_LoadG:
      write_word(w, s->Ist.LoadG.details->dst);
      write_word(w, s->Ist.LoadG.details->cvt - ILGop_INVALID);
      write_expr(w, s->Ist.LoadG.details->guard);
      write_expr(w, s->Ist.LoadG.details->addr);
      write_expr(w, s->Ist.LoadG.details->alt);
      return;
    case Ist_CAS:
      write_cas(w, s->Ist.CAS.details);
      return;
    case Ist_Dirty:
      write_dirty(w, s->Ist.Dirty.details);
      return;
    case Ist_MBE:
      write_word(w, s->Ist.MBE.event - Imbe_Fence);
      return;
    case Ist_Exit:
      write_expr(w, s->Ist.Exit.guard);
      write_constant(w, s->Ist.Exit.dst);
      write_word(w, s->Ist.Exit.jk - Ijk_INVALID);
      return;
    case Ist_NoOp:
    case Ist_AbiHint:
    case Ist_LLSC:  // not on x86
      return;
  }
}

// The number of statements of instructions that end by end, and the address of the first
// other one.
static int statements_before(const IRSB *sb, uint64_t end, uint64_t *next) {
  for (int i = 0; i < sb->stmts_used; i++) {
    const IRStmt *s = sb->stmts[i];
    // Undecodable instructions have no length.
    if (s->tag != Ist_IMark) continue;
    if (s->Ist.IMark.addr < end && s->Ist.IMark.addr + s->Ist.IMark.len <= end) continue;
    *next = s->Ist.IMark.addr;
    return i;
  }
  return sb->stmts_used;
}

static void write_block(struct heddle_words *w, const IRSB *sb, uint64_t address, uint64_t end) {
  write_word(w, (uint64_t)sb->tyenv->types_used);
  for (int i = 0; i < sb->tyenv->types_used; i++) write_word(w, sb->tyenv->types[i] - Ity_INVALID);
  uint64_t next = end;
  int n = statements_before(sb, end, &next);
  write_word(w, (uint64_t)n);
  for (int i = 0; i < n; i++) write_statement(w, sb->stmts[i]);
  if (n == sb->stmts_used) {
    write_expr(w, sb->next);
    write_word(w, sb->jumpkind - Ijk_INVALID);
  } else {
    write_expr(w, IRExpr_Const(IRConst_U64(next)));
    write_word(w, Ijk_Boring - Ijk_INVALID);
  }
  // Where statements were cut off, or the address before the block.
  write_word(w, n == sb->stmts_used ? address - 1 : next);
}

// Lifts the block at the beginning of code. The library does not know where code ends: an
// invalid instruction must follow, at which it stops. Returns 0, or -1 if the library gave
// up.
int heddle_lift(const uint8_t *code, size_t size, uint64_t address, struct heddle_words *out) {
  init_library();
  out->n = 0;
  if (setjmp(gave_up)) return -1;
  VexTranslateArgs args;
  VexGuestExtents extents;
  memset(&args, 0, sizeof args);
  args.arch_guest = args.arch_host = VexArchAMD64;
  LibVEX_default_VexArchInfo(&args.archinfo_guest);
  args.archinfo_guest.endness = VexEndnessLE;
  args.archinfo_guest.hwcaps = VEX_HWCAPS_AMD64_SSE3 | VEX_HWCAPS_AMD64_SSSE3 | VEX_HWCAPS_AMD64_CX16;
  args.archinfo_host = args.archinfo_guest;
  LibVEX_default_VexAbiInfo(&args.abiinfo_both);
  args.abiinfo_both.guest_stack_redzone_size = 128;
  args.abiinfo_both.guest_amd64_assume_fs_is_const = True;
  args.abiinfo_both.guest_amd64_assume_gs_is_const = True;
  args.guest_bytes = code;
  args.guest_bytes_addr = address;
  args.chase_into_ok = never_chase;
  args.guest_extents = &extents;
  args.needs_self_check = no_self_check;
  // For a back end that is not run; the library requires them.
  args.disp_cp_chain_me_to_slowEP = args.disp_cp_chain_me_to_fastEP = (const void *)give_up;
  args.disp_cp_xindir = args.disp_cp_xassisted = (const void *)give_up;
  VexTranslateResult result;
  // Blocks are executed as a whole: registers must be right only where blocks are left.
  VexRegisterUpdates control = VexRegUpdSpAtMemAccess;
  const IRSB *sb = LibVEX_FrontEnd(&args, &result, &control);
  if (!sb || result.status != VexTransOK) return -1;
  write_block(out, sb, address, address + size);
  return 0;
}

// The name that the library prints for an operation.
size_t heddle_op_name(int op, char *out, size_t room) {
  init_library();
  nprinted = 0;
  if (setjmp(gave_up)) return 0;
  ppIROp((IROp)(Iop_INVALID + op));
  size_t n = nprinted < room ? nprinted : room;
  memcpy(out, printed, n);
  return n;
}

// The text at an address among the words.
const char *heddle_text(uint64_t word) { return (const char *)(uintptr_t)word; }

int heddle_op_count(void) { return Iop_LAST - Iop_INVALID; }
