/*
 * stream_index_fields.h - the single numbers of an index document, as one table.
 *
 * Shared by the writer and the reader of stream_index.h and used by nobody else. Const.
 */
#ifndef TP_TRACE_STREAM_INDEX_FIELDS_H
#define TP_TRACE_STREAM_INDEX_FIELDS_H

#include <stddef.h>

#define TP_INDEX_VERSION 1

enum tp_index_form { TP_INDEX_U32, TP_INDEX_U64, TP_INDEX_I64, TP_INDEX_BOOL };

/* One member of the document and its field of struct tp_stream_index. */
struct tp_index_number {
    const char *name;
    size_t offset;
    enum tp_index_form form;
};

extern const struct tp_index_number tp_index_numbers[];
extern const size_t tp_index_n_numbers;

#endif
