/*
 * type_problem.h - what the registry and the filter say about a refusal, as a problem.
 *
 * Pure functions over plain data; safe from any thread.
 */
#ifndef TP_ENGINE_TYPE_PROBLEM_H
#define TP_ENGINE_TYPE_PROBLEM_H

#include <stdbool.h>

#include "engine/problem.h"

struct tp_filter_detail;

/*
 * Fill in a problem from what a registration or lookup said; returns code.
 *
 * is_batch  name the spec at fault in the field ("types[3].plugin").
 * name      what was looked up; empty for a registration.
 */
int tp_problem_from_registry(struct tp_problem *p,
                             const struct tp_registry_detail *detail, const char *job,
                             bool is_batch, struct tp_str name, int code);

/* The same for tp_filter_new(). */
int tp_problem_from_filter(struct tp_problem *p, const struct tp_filter_detail *detail,
                           const char *job, int code);

#endif
