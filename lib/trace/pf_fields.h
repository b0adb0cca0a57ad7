/*
 * pf_fields.h - the protobuf field numbers that we write and read.
 *
 * The public ones are from Perfetto's protos/perfetto/trace/ (the file is named at
 * each message); they never change their meaning. The private ones, TP_PF_X_..., are
 * ours, in ranges that Perfetto leaves to others (TrackEvent: 9900 to 10000) or that
 * its readers skip as unknown. docs/stream-format.md and
 * docs/traceplane_extensions.proto describe them for others: change all together.
 * Numbers only; nothing to call.
 */
#ifndef TP_TRACE_PF_FIELDS_H
#define TP_TRACE_PF_FIELDS_H

#define TP_PF_FORMAT_VERSION 1 /* of our private fields; in TP_PF_X_PACKET_VERSION */

enum { TP_PF_TRACE_PACKET = 1 }; /* trace.proto: Trace */

/* trace_packet.proto: TracePacket */
enum {
    TP_PF_PACKET_CLOCK_SNAPSHOT = 6,
    TP_PF_PACKET_TIMESTAMP = 8,
    TP_PF_PACKET_SEQUENCE_ID = 10,
    TP_PF_PACKET_TRACK_EVENT = 11,
    TP_PF_PACKET_INTERNED_DATA = 12,
    TP_PF_PACKET_SEQUENCE_FLAGS = 13,
    TP_PF_PACKET_INCREMENTAL_STATE_CLEARED = 41, /* bool, before sequence_flags */
    TP_PF_PACKET_TIMESTAMP_CLOCK_ID = 58,
    TP_PF_PACKET_DEFAULTS = 59,
    TP_PF_PACKET_TRACK_DESCRIPTOR = 60,
    TP_PF_X_PACKET_PRIVATE = 9901, /* PrivateEvent: a TrackEvent by our rules */
    TP_PF_X_PACKET_FRAME = 9902,   /* FrameHeader: see frame.h */
    TP_PF_X_PACKET_BLANK = 9905,   /* bytes; was damaged and is to be skipped */
    TP_PF_X_PACKET_VERSION = 9903, /* uint32: the sequence is ours, of this version */
    TP_PF_X_PACKET_INFO = 9904,    /* string: what a download says of itself, JSON */
    TP_PF_X_PACKET_MERGED = 9906,  /* bool: a stream of several in one download */
    TP_PF_X_PACKET_NATIVE = 9907   /* Native: see native_batch.h */
};

/* Native: what a linked producer says of a batch. */
enum {
    TP_PF_X_NATIVE_EVENTS = 1,        /* fixed64 */
    TP_PF_X_NATIVE_CLOCK_ERROR_NS = 2 /* fixed64; of the snapshot beside it */
};

#define TP_PF_SEQUENCE_CLEARED 1u /* bits of sequence_flags */
#define TP_PF_SEQUENCE_NEEDS 2u

/* trace_packet_defaults.proto: TracePacketDefaults */
enum { TP_PF_DEFAULTS_TRACK_EVENT = 11, TP_PF_DEFAULTS_CLOCK_ID = 58 };

/* interned_data/interned_data.proto: InternedData; entries are {iid 1, name 2} */
enum {
    TP_PF_INTERNED_CATEGORIES = 1,
    TP_PF_INTERNED_NAMES = 2,
    TP_PF_INTERNED_ARG_NAMES = 3,
    TP_PF_INTERNED_ARG_STRINGS = 29,
    TP_PF_INTERNED_IID = 1,
    TP_PF_INTERNED_TEXT = 2
};

/* track_event/track_event.proto: TrackEvent */
enum {
    TP_PF_EVENT_DELTA_US = 1,
    TP_PF_EVENT_CATEGORY_IIDS = 3,
    TP_PF_EVENT_ARGS = 4,
    TP_PF_EVENT_LEGACY = 6,
    TP_PF_EVENT_TYPE = 9,
    TP_PF_EVENT_NAME_IID = 10,
    TP_PF_EVENT_TRACK_UUID = 11,
    TP_PF_EVENT_ABSOLUTE_US = 16,
    TP_PF_EVENT_CATEGORIES = 22,
    TP_PF_EVENT_NAME = 23,
    TP_PF_EVENT_COUNTER = 30,
    TP_PF_EVENT_FLOWS_OLD = 36,
    TP_PF_EVENT_END_FLOWS_OLD = 42,
    TP_PF_EVENT_COUNTER_DOUBLE = 44,
    TP_PF_EVENT_FLOWS = 47,
    TP_PF_EVENT_END_FLOWS = 48,
    TP_PF_X_EVENT_DUR_NS = 9900,     /* varint; on a BEGIN: the whole slice */
    TP_PF_X_EVENT_SYNTHETIC = 9901,  /* bool; an END that the slice implies */
    TP_PF_X_EVENT_UNFINISHED = 9902, /* bool */
    TP_PF_X_EVENT_EXTRA = 9903,      /* string; members as JSON text */
    TP_PF_X_EVENT_ID_NUMBER = 9904,  /* sint64 */
    TP_PF_X_EVENT_ID_TEXT = 9905,    /* string */
    TP_PF_X_EVENT_PHASE = 9906,      /* varint; a phase that its kind does not imply */
    TP_PF_X_EVENT_SERIES = 9907,     /* varint; packets of this counter event */
    TP_PF_X_EVENT_SCOPE = 9908,      /* varint; a scope that Perfetto has not */
    TP_PF_X_EVENT_BINDS = 9909,      /* bool; "bp":"e" of what is no flow */
    TP_PF_X_EVENT_TRACK = 9910,      /* varint; uuid of a counter event's own track */
    TP_PF_X_EVENT_KIND = 9911,       /* varint; private events: enum tp_event_kind */
    TP_PF_X_EVENT_TS_NS = 9912,      /* sint64; private events: their time */
    TP_PF_X_EVENT_GHOST = 9913       /* bool; private events: only track and time */
};

/* TrackEvent.Type */
enum {
    TP_PF_TYPE_NONE = 0,
    TP_PF_TYPE_BEGIN = 1,
    TP_PF_TYPE_END = 2,
    TP_PF_TYPE_INSTANT = 3,
    TP_PF_TYPE_COUNTER = 4
};

/* TrackEvent.LegacyEvent */
enum {
    TP_PF_LEGACY_NAME_IID = 1,
    TP_PF_LEGACY_PHASE = 2,
    TP_PF_LEGACY_DURATION_US = 3,
    TP_PF_LEGACY_UNSCOPED_ID = 6,
    TP_PF_LEGACY_BIND_ID = 8,
    TP_PF_LEGACY_LOCAL_ID = 10,
    TP_PF_LEGACY_GLOBAL_ID = 11,
    TP_PF_LEGACY_BIND_TO_ENCLOSING = 12,
    TP_PF_LEGACY_FLOW_DIRECTION = 13,
    TP_PF_LEGACY_INSTANT_SCOPE = 14,
    TP_PF_LEGACY_PID = 18,
    TP_PF_LEGACY_TID = 19
};

/* track_event/debug_annotation.proto: DebugAnnotation */
enum {
    TP_PF_ARG_NAME_IID = 1,
    TP_PF_ARG_BOOL = 2,
    TP_PF_ARG_UINT = 3,
    TP_PF_ARG_INT = 4,
    TP_PF_ARG_DOUBLE = 5,
    TP_PF_ARG_STRING = 6,
    TP_PF_ARG_POINTER = 7,
    TP_PF_ARG_NESTED = 8,
    TP_PF_ARG_JSON = 9,
    TP_PF_ARG_NAME = 10,
    TP_PF_ARG_DICT = 11,
    TP_PF_ARG_ARRAY = 12,
    TP_PF_ARG_STRING_IID = 17
};

/* DebugAnnotation.NestedValue */
enum {
    TP_PF_NESTED_TYPE = 1, /* 1 dict, 2 array */
    TP_PF_NESTED_KEYS = 2,
    TP_PF_NESTED_VALUES = 3,
    TP_PF_NESTED_ITEMS = 4,
    TP_PF_NESTED_INT = 5,
    TP_PF_NESTED_DOUBLE = 6,
    TP_PF_NESTED_BOOL = 7,
    TP_PF_NESTED_STRING = 8
};

/* track_event/track_descriptor.proto: TrackDescriptor */
enum {
    TP_PF_TRACK_UUID = 1,
    TP_PF_TRACK_NAME = 2,
    TP_PF_TRACK_PROCESS = 3,
    TP_PF_TRACK_THREAD = 4,
    TP_PF_TRACK_PARENT = 5,
    TP_PF_TRACK_COUNTER = 8,
    TP_PF_TRACK_STATIC_NAME = 10,
    TP_PF_X_TRACK_KIND = 9900,       /* varint; enum tp_pf_track_kind: ours */
    TP_PF_X_TRACK_PID_NUMBER = 9901, /* sint64; the pid as the source had it */
    TP_PF_X_TRACK_PID_TEXT = 9902,   /* string */
    TP_PF_X_TRACK_TID_NUMBER = 9903, /* sint64 */
    TP_PF_X_TRACK_TID_TEXT = 9904,   /* string */
    TP_PF_X_TRACK_LANE = 9905,       /* varint */
    TP_PF_X_TRACK_SERIES = 9906,     /* string; of a counter: the argument's name */
    TP_PF_X_TRACK_OWN_NAME = 9907    /* string; the name that a metadata event gave */
};

/* TrackDescriptor's process (process_descriptor.proto) and thread (thread_...) */
enum {
    TP_PF_PROCESS_PID = 1,
    TP_PF_PROCESS_NAME = 6,
    TP_PF_THREAD_PID = 1,
    TP_PF_THREAD_TID = 2,
    TP_PF_THREAD_NAME = 5
};

/* counter_descriptor.proto: CounterDescriptor */
enum {
    TP_PF_COUNTER_UNIT = 3, /* enum: 1 "ns", 2 "count", 3 "bytes" */
    TP_PF_COUNTER_MULTIPLIER = 4,
    TP_PF_COUNTER_INCREMENTAL = 5,
    TP_PF_COUNTER_UNIT_NAME = 6
};

/* clock_snapshot.proto: ClockSnapshot and its Clock; builtin_clock.proto */
enum {
    TP_PF_SNAPSHOT_CLOCKS = 1,
    TP_PF_SNAPSHOT_PRIMARY = 2,
    TP_PF_CLOCK_ID = 1,
    TP_PF_CLOCK_TIMESTAMP = 2,
    TP_PF_CLOCK_INCREMENTAL = 3,
    TP_PF_CLOCK_MULTIPLIER_NS = 4,
    TP_PF_CLOCK_BOOTTIME = 6, /* the trace clock unless a snapshot says otherwise */
    TP_PF_CLOCK_SEQUENCE_MIN = 64,
    TP_PF_CLOCK_SEQUENCE_MAX = 127
};

#endif
