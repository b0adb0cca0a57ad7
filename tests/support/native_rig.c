/*
 * native_rig.c - see native_rig.h.
 */
#include "support/native_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/typemap.h"
#include "support/native_form.h"
#include "trace/pf_writer.h"

#define TRACKS 8

struct tp_typemap *native_rig_types;

int native_rig_set_up(void **state)
{
    (void)state;
    return tp_typemap_new(NULL, &native_rig_types, NULL);
}

int native_rig_tear_down(void **state)
{
    (void)state;
    tp_typemap_unref(native_rig_types);
    return 0;
}

static const struct tp_track tracks[TRACKS] = {
#define TRACK(i)                                                            \
    {                                                                       \
        .index = (i), .pid = {.kind = TP_ID_NUMBER, .number = 42}, .tid = { \
            .kind = TP_ID_NUMBER,                                           \
            .number = (i)                                                   \
        }                                                                   \
    }
    TRACK(0), TRACK(1), TRACK(2), TRACK(3), TRACK(4),
    TRACK(5), TRACK(6), TRACK(7)
#undef TRACK
};

void native_rig_begin(struct native_rig *rig, uint32_t stream_no,
                      const struct tp_native_clock *clock)
{
    struct tp_pf_writer_opts opts = {.stream_no = stream_no};
    char room[TP_NATIVE_HEAD_BYTES] = {0};
    struct tp_err err;

    native_rig_fini(rig);
    rig->head.stream_no = stream_no;
    rig->head.has_clock = clock != NULL;
    if (clock != NULL)
        rig->head.clock = *clock;
    assert_int_equal(tp_pf_writer_new(&opts, &rig->writer, &err), TP_OK);
    assert_int_equal(tp_buf_append(&rig->bytes, room, sizeof(room), &err), TP_OK);
}

void native_rig_event(struct native_rig *rig, const struct tp_event *ev)
{
    struct tp_err err;

    assert_int_equal(tp_pf_writer_event(rig->writer, ev, &rig->bytes, &err), TP_OK);
    rig->head.n_events++;
}

void native_rig_slice(struct native_rig *rig, const char *cat, const char *name,
                      int64_t tid, int64_t ts_ns, int64_t dur_ns)
{
    struct tp_arg arg = {.key = {"n", 1, 0}, .kind = TP_ARG_INT, .i = ts_ns % 7};
    struct tp_event ev = {.kind = TP_EVENT_SLICE,
                          .phase = 'X',
                          .ts_ns = ts_ns,
                          .dur_ns = dur_ns,
                          .name = {name, (uint32_t)strlen(name), 0},
                          .cat = {cat, (uint32_t)strlen(cat), 0},
                          .track = &tracks[tid],
                          .args = &arg,
                          .n_args = 1};

    native_rig_event(rig, &ev);
}

void native_rig_instant(struct native_rig *rig, const struct tp_track *track,
                        int64_t ts_ns)
{
    struct tp_event ev = {.kind = TP_EVENT_INSTANT,
                          .phase = 'i',
                          .scope = 't',
                          .ts_ns = ts_ns,
                          .name = {"tick", 4, 0},
                          .cat = {"kernel", 6, 0},
                          .track = track};

    native_rig_event(rig, &ev);
}

void native_rig_end(struct native_rig *rig)
{
    tp_native_head_put(rig->bytes.data, &rig->head);
    if (!rig->keeps_ends)
        native_form_leave_out_ends(&rig->bytes, 0);
}

void native_rig_fini(struct native_rig *rig)
{
    tp_pf_writer_free(rig->writer);
    tp_buf_fini(&rig->bytes);
    *rig = (struct native_rig){0};
}
