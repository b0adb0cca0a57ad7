/*
 * batch_tracks.c - descriptors, each once in a batch, and names, each once in a trace.
 */
#include <errno.h>
#include <stdio.h>

#include "base/utf8.h"
#include "producer/batch_state.h"
#include "trace/pf_descriptor.h"
#include "trace/pf_encode.h"

static uint64_t process_uuid(const struct tp_batch_writer *b)
{
    return tp_pf_uuid(TP_PF_KIND_PROCESS, b->stream_no, 0, 0);
}

/* The metadata event that names a track: `what` is one of our texts. */
static char *put_meta(struct tp_batch_writer *b, char *p, uint32_t what,
                      uint64_t track_uuid, struct tp_str name)
{
    static const struct tp_track track;
    struct tp_arg arg = {.key = {"name", 4, 0}, .kind = TP_ARG_STRING, .s = name};
    struct tp_event ev = {.kind = TP_EVENT_META,
                          .phase = 'M',
                          .track = &track,
                          .args = &arg,
                          .n_args = 1};
    struct tp_pf_plan plan = {.form = TP_PF_FORM_PRIVATE,
                              .sequence_id = b->stream_no,
                              .stream_no = b->stream_no,
                              .has_args = true,
                              .track_uuid = track_uuid};
    uint32_t key = tp_batch_say_key(b, &p, b->name);

    if (name.len == 0)
        return p;
    plan.key_iids = &key;
    plan.name_iid = tp_batch_say_name(b, &p, what);
    b->n_metas++;
    return tp_pf_put_event(p, tp_pf_event_room(&ev), &ev, &plan, NULL);
}

static char *say_process(struct tp_batch_writer *b, char *p)
{
    const struct tp_id pid = {.kind = TP_ID_NUMBER, .number = b->pid};
    struct tp_str name = tp_utf8_cut(tp_str_of(program_invocation_short_name), 255);
    struct tp_pf_descriptor d = {.kind = TP_PF_KIND_PROCESS,
                                 .uuid = process_uuid(b),
                                 .has_process = true,
                                 .shown_pid = (int32_t)b->pid,
                                 .process_name = name,
                                 .pid = &pid};

    if (b->process_batch == b->number)
        return p;
    b->process_batch = b->number;
    p = tp_pf_put_descriptor(p, b->stream_no, &d);
    if (b->process_trace == b->trace)
        return p;
    b->process_trace = b->trace;
    return put_meta(b, p, b->process_name, d.uuid, name);
}

/* The kernel cuts a name after 15 bytes, be it in the middle of a character, and the
 * service would take apart each batch with such a one. */
static struct tp_str without_half(struct tp_str whole)
{
    const size_t valid = tp_utf8_valid_prefix(whole.ptr, whole.len);

    return whole.len - valid > 4 ? whole : (struct tp_str){whole.ptr, valid};
}

/* The track of the thread, and that of the process. */
char *tp_batch_say_thread(struct tp_batch_writer *b, char *p)
{
    const struct tp_id pid = {.kind = TP_ID_NUMBER, .number = b->pid};
    const struct tp_id tid = {.kind = TP_ID_NUMBER, .number = (int64_t)b->thread.tid};
    struct tp_str name = without_half(tp_str_of(b->thread.name));
    struct tp_pf_descriptor d = {.kind = TP_PF_KIND_TRACK,
                                 .uuid = b->thread_uuid,
                                 .has_thread = true,
                                 .shown_pid = (int32_t)b->pid,
                                 .shown_tid = (int32_t)b->thread.tid,
                                 .thread_name = name,
                                 .pid = &pid,
                                 .tid = &tid};

    b->is_thread_said = true;
    p = say_process(b, p);
    p = tp_pf_put_descriptor(p, b->stream_no, &d);
    if (*b->thread.is_told)
        return p;
    *b->thread.is_told = true;
    return put_meta(b, p, b->thread_name, d.uuid, name);
}

/* Numbers of devices are small and begin at 0: viewers get others, which no process is
 * has. */
#define SHOWN(number) (0x40000000 | (int32_t)((number)&0x3fffffff))

/* The process of a device, by its number, as readers of Kineto's traces expect it. In a
 * container the program may have that number itself, and two processes with one id are
 * one to everybody: then it is the number that viewers get. */
static int64_t device_pid(const struct tp_batch_writer *b, uint32_t device)
{
    return device == b->pid ? SHOWN(device) : device;
}

static char *say_device(struct tp_batch_writer *b, char *p,
                        const struct tp_device_track_info *t)
{
    const struct tp_id pid = {.kind = TP_ID_NUMBER, .number = device_pid(b, t->device)};
    char name[32];
    struct tp_pf_descriptor d = {.kind = TP_PF_KIND_PROCESS,
                                 .uuid = tp_pf_uuid(TP_PF_KIND_PROCESS, b->stream_no,
                                                    t->first, 0),
                                 .has_process = true,
                                 .shown_pid = SHOWN(t->device),
                                 .pid = &pid};

    if (b->device_process_batch[t->first] == b->number)
        return p;
    b->device_process_batch[t->first] = b->number;
    d.process_name.ptr = name;
    d.process_name.len = (size_t)snprintf(name, sizeof(name), "device %u", t->device);
    p = tp_pf_put_descriptor(p, b->stream_no, &d);
    if (b->device_process_trace[t->first] == b->trace)
        return p;
    b->device_process_trace[t->first] = b->trace;
    return put_meta(b, p, b->process_name, d.uuid, d.process_name);
}

/* The track of a stream of a device; *uuid is set. */
static char *say_device_track(struct tp_batch_writer *b, char *p, uint32_t number,
                              const struct tp_device_track_info *t, uint64_t *uuid)
{
    const struct tp_id pid = {.kind = TP_ID_NUMBER, .number = device_pid(b, t->device)};
    const struct tp_id tid = {.kind = TP_ID_NUMBER, .number = t->stream};
    char name[32];
    struct tp_pf_descriptor d = {.kind = TP_PF_KIND_TRACK,
                                 .has_thread = true,
                                 .shown_pid = SHOWN(t->device),
                                 .shown_tid = SHOWN(number),
                                 .pid = &pid,
                                 .tid = &tid};

    d.uuid = *uuid = tp_pf_uuid(TP_PF_KIND_TRACK, b->stream_no, number, 1);
    if (b->device_batch[number] == b->number)
        return p;
    b->device_batch[number] = b->number;
    d.thread_name.ptr = name;
    d.thread_name.len = (size_t)snprintf(name, sizeof(name), "stream %u", t->stream);
    p = say_device(b, p, t);
    p = tp_pf_put_descriptor(p, b->stream_no, &d);
    if (b->device_trace[number] == b->trace)
        return p;
    b->device_trace[number] = b->trace;
    return put_meta(b, p, b->thread_name, d.uuid, d.thread_name);
}

/* The series of a counter; *uuid is set. n_said is not 0. */
char *tp_batch_say_series(struct tp_batch_writer *b, char *p, uint32_t text,
                          uint64_t *uuid)
{
    const struct tp_id pid = {.kind = TP_ID_NUMBER, .number = b->pid};
    const struct tp_id tid = {.kind = TP_ID_NUMBER, .number = (int64_t)b->thread.tid};
    struct tp_pf_descriptor d = {.kind = TP_PF_KIND_SERIES,
                                 .parent_uuid = process_uuid(b),
                                 .series = {"value", 5},
                                 .pid = &pid,
                                 .tid = &tid};

    text = tp_batch_known(b, text);
    *uuid = tp_pf_uuid(TP_PF_KIND_SERIES, b->stream_no, text, 0);
    if (b->said[text].series_batch == b->number)
        return p;
    b->said[text].series_batch = b->number;
    d.uuid = *uuid;
    d.name = tp_texts_get(text);
    return tp_pf_put_descriptor(p, b->stream_no, &d);
}

/* The track of a record that names one; that of its thread when it names none. */
char *tp_batch_say_track(struct tp_batch_writer *b, char *p, uint64_t number,
                         uint64_t *uuid)
{
    struct tp_device_track_info info;

    if (number <= TP_DEVICE_TRACKS_MAX && tp_device_tracks_get((uint32_t)number, &info))
        return say_device_track(b, p, (uint32_t)number, &info, uuid);
    *uuid = b->thread_uuid;
    return b->is_thread_said ? p : tp_batch_say_thread(b, p);
}
