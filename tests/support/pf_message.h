/*
 * pf_message.h - Perfetto packets put together by hand, as others write them.
 *
 * Messages have a fixed room; a test that needs more ends the program. Not shared
 * between threads.
 */
#ifndef TP_SUPPORT_PF_MESSAGE_H
#define TP_SUPPORT_PF_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#define PF_MESSAGE_BYTES 2048

/* A message under construction; start with n = 0. */
struct pf_message {
    char bytes[PF_MESSAGE_BYTES];
    size_t n;
};

/* Append a varint field. */
void pf_message_number(struct pf_message *m, uint32_t field, uint64_t v);

/* Append a string field. */
void pf_message_text(struct pf_message *m, uint32_t field, const char *s);

/* Append a double field. */
void pf_message_real(struct pf_message *m, uint32_t field, double d);

/* Append a fixed64 field. */
void pf_message_fixed(struct pf_message *m, uint32_t field, uint64_t v);

/* Append a message field. */
void pf_message_nest(struct pf_message *m, uint32_t field,
                     const struct pf_message *inner);

/* Append a packet of sequence 1 with one message field. */
void pf_message_packet(struct pf_message *trace, uint32_t field,
                       const struct pf_message *inner);

/* Append a packet of sequence 1 with a track event at ts. */
void pf_message_event(struct pf_message *trace, uint64_t ts,
                      const struct pf_message *event);

/* As above for an event of type, track and name (NULL: none). */
void pf_message_simple(struct pf_message *trace, uint64_t ts, uint64_t type,
                       uint64_t uuid, const char *name);

#endif
