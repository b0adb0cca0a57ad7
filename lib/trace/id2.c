/*
 * id2.c - only the one value is written anew; all around it stays byte for byte.
 *
 *     "tts":3,"id2":{"global":"0x5"},"x":1
 *     `------ before -------'  `-- behind
 */
#include "trace/id2.h"

#include "base/buf.h"
#include "base/json_members.h"
#include "trace/pf_encode.h"

/* Whether text is a string or a number: what an id may be. */
static bool is_id(struct tp_str text)
{
    return text.len > 0 && (text.ptr[0] == '"' || text.ptr[0] == '-' ||
                            (text.ptr[0] >= '0' && text.ptr[0] <= '9'));
}

int tp_id2_separate(const struct tp_event *ev, uint32_t stream_no, struct tp_buf *out,
                    bool *is_changed, struct tp_err *err)
{
    const char *end;
    struct tp_str id2;
    struct tp_str id;
    bool is_local;
    size_t quote;
    int rc;

    *is_changed = tp_pf_id2(ev, &id2, &is_local) && !is_local &&
                  tp_json_members_find(id2, "global", &id) && is_id(id);
    if (!*is_changed)
        return TP_OK;
    end = ev->extra.ptr + ev->extra.len;
    quote = id.ptr[0] == '"';
    out->len = 0;
    rc = tp_buf_append(out, ev->extra.ptr, (size_t)(id.ptr - ev->extra.ptr), err);
    if (rc == TP_OK)
        rc = tp_buf_printf(out, err, "\"%u:", stream_no);
    if (rc == TP_OK)
        rc = tp_buf_append(out, id.ptr + quote, id.len - quote, err);
    if (rc == TP_OK && quote == 0)
        rc = tp_buf_append(out, "\"", 1, err);
    id.ptr += id.len;
    return rc == TP_OK ? tp_buf_append(out, id.ptr, (size_t)(end - id.ptr), err) : rc;
}
