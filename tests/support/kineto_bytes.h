/*
 * kineto_bytes.h - datagrams as Kineto processes send them, built by hand.
 *
 * Written from the description of the protocol and not with lib/kineto, so that a
 * mistake there is not made twice. No state; any thread.
 */
#ifndef TP_SUPPORT_KINETO_BYTES_H
#define TP_SUPPORT_KINETO_BYTES_H

#include <stddef.h>
#include <stdint.h>

#define KINETO_BYTES_MAX 1024

/* A request with n pids (up to 200); returns its length. out has KINETO_BYTES_MAX. */
size_t kineto_request(char *out, int32_t type, int64_t job, const int32_t *pids,
                      int32_t n);

/* A context; returns its length. */
size_t kineto_context(char *out, int32_t gpu, int32_t pid, int64_t job);

/* A header that announces a payload of size bytes; returns its length. */
size_t kineto_header(char *out, uint64_t size, const char *type);

#endif
