#include "ipt.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

struct page {
  struct page *next;
  uint64_t space, number;
  uint8_t bytes[PAGE];
  bool present[PAGE];
};

enum { BUCKETS = 1 << 14 };

struct heddle_pages {
  struct page *bucket[BUCKETS];
};

static struct page *page_of(struct heddle_pages *pages, uint64_t space, uint64_t number, bool make) {
  struct page **at = &pages->bucket[(number ^ number >> 14 ^ space >> 12) % BUCKETS];
  for (struct page *p = *at; p; p = p->next)
    if (p->space == space && p->number == number) return p;
  if (!make) return NULL;
  struct page *p = calloc(1, sizeof *p);
  if (!p) abort();
  p->space = space, p->number = number, p->next = *at;
  return *at = p;
}

// Puts a piece of code into the pages: all of it, or only the bytes that are missing there.
static void put_code(struct heddle_ipt *d, const struct heddle_code *c, bool all) {
  for (uint64_t i = 0; i < c->length; i++) {
    struct page *p = page_of(d->pages, c->space, (c->address + i) / PAGE, true);
    uint64_t at = (c->address + i) % PAGE;
    if (p->present[at] && !all) continue;
    p->bytes[at] = d->bytes[c->offset + i];
    p->present[at] = true;
  }
}

static void apply_changes(struct heddle_ipt *d) {
  for (; d->applied < d->pieces && d->code[d->applied].at <= d->count; d->applied++)
    put_code(d, &d->code[d->applied], true);
}

static int read_code(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip, void *context) {
  struct heddle_ipt *d = context;
  apply_changes(d);
  struct page *p = NULL;
  size_t n = 0;
  for (; n < size; n++, ip++) {
    if (!p || ip % PAGE == 0) p = page_of(d->pages, asid->cr3, ip / PAGE, false);
    if (!p || !p->present[ip % PAGE]) break;
    buffer[n] = p->bytes[ip % PAGE];
  }
  return n ? (int)n : -pte_nomap;
}

static void init_config(struct pt_config *config, uint8_t *stream, uint64_t n) {
  pt_config_init(config);
  config->begin = stream;
  config->end = stream + n;
}

int heddle_ipt_open(struct heddle_ipt *d, uint8_t *stream, uint64_t n, uint32_t crystal, uint8_t mtc, uint8_t nominal) {
  struct pt_config config;
  init_config(&config, stream, n);
  config.cpuid_0x15_eax = 1;
  config.cpuid_0x15_ebx = crystal;
  config.mtc_freq = mtc;
  config.nom_freq = nominal;
  d->decoder = pt_insn_alloc_decoder(&config);
  d->pages = calloc(1, sizeof *d->pages);
  if (!d->decoder || !d->pages) return -pte_nomem;
  for (uint64_t i = 0; i < d->pieces; i++) put_code(d, &d->code[i], false);
  return pt_image_set_callback(pt_insn_get_image(d->decoder), read_code, d);
}

void heddle_ipt_close(struct heddle_ipt *d) {
  pt_insn_free_decoder(d->decoder);
  for (size_t i = 0; i < BUCKETS; i++)
    for (struct page *p = d->pages->bucket[i], *next; p; p = next) next = p->next, free(p);
  free(d->pages);
}

int heddle_ipt_sync(struct heddle_ipt *d) { return d->status = pt_insn_sync_forward(d->decoder); }

static void describe_event(struct heddle_event *out, const struct pt_event *ev, uint64_t count) {
  *out = (struct heddle_event){.type = ev->type + 1, .after = count, .tsc = ev->has_tsc ? ev->tsc : 0};
  switch (ev->type) {
    case ptev_enabled:
      out->ip = ev->variant.enabled.ip;
      break;
    case ptev_async_disabled:
      out->ip = ev->variant.async_disabled.at;
      break;
    case ptev_async_branch:
      out->ip = ev->variant.async_branch.from;
      break;
    case ptev_paging:
    case ptev_async_paging:
      out->space = ev->variant.paging.cr3;
      break;
    default:
      break;
  }
}

// Decodes until addresses has no more room, an event occurs or decoding ends. Returns 0 or a
// negative error.
int heddle_ipt_next(struct heddle_ipt *d, uint64_t *addresses, uint64_t max, uint64_t *n, struct heddle_event *event) {
  *n = 0;
  event->type = 0;
  d->last = 0;
  while (*n < max) {
    if (d->status < 0) return d->status;
    if (d->status & pts_event_pending) {
      struct pt_event ev;
      d->status = pt_insn_event(d->decoder, &ev, sizeof ev);
      if (d->status < 0) return d->status;
      describe_event(event, &ev, d->count);
      return 0;
    }
    if (d->status & pts_eos) return -pte_eos;
    struct pt_insn in = {.iclass = ptic_error};
    d->status = pt_insn_next(d->decoder, &in, sizeof in);
    if (d->status < 0) {
      d->last = in.iclass != ptic_error;
      d->last_ip = in.ip;
      return d->status;
    }
    addresses[(*n)++] = in.ip;
    d->count++;
  }
  return 0;
}

// Decodes a whole stream with the block decoder over sections of a file. Returns the number of
// instructions or a negative error.
int64_t heddle_ipt_blocks(uint8_t *stream, uint64_t n, const char *file, const struct heddle_section *sections,
                          uint64_t nsections) {
  struct pt_config config;
  init_config(&config, stream, n);
  struct pt_block_decoder *decoder = pt_blk_alloc_decoder(&config);
  struct pt_image_section_cache *cache = pt_iscache_alloc(NULL);
  if (!decoder || !cache) return -pte_nomem;
  int status = 0;
  for (uint64_t i = 0; i < nsections && status >= 0; i++) {
    const struct heddle_section *s = &sections[i];
    int id = pt_iscache_add_file(cache, file, s->offset, s->size, s->address);
    status = id < 0 ? id : pt_image_add_cached(pt_blk_get_image(decoder), cache, id, NULL);
  }
  int64_t count = 0;
  if (status >= 0) status = pt_blk_sync_forward(decoder);
  while (status >= 0) {
    if (status & pts_event_pending) {
      struct pt_event ev;
      status = pt_blk_event(decoder, &ev, sizeof ev);
      continue;
    }
    if (status & pts_eos) break;
    struct pt_block block;
    status = pt_blk_next(decoder, &block, sizeof block);
    count += block.ninsn;
  }
  pt_blk_free_decoder(decoder);
  pt_iscache_free(cache);
  return status < 0 && status != -pte_eos ? status : count;
}
