/*
 * macros.h - the short forms of record.h, for C and for C++.
 *
 * Part of traceplane.h, which is what to include. When the type is not recorded each
 * macro is one load and one branch, and evaluates no argument but client and type.
 * Names and keys are string literals: their numbers are looked up once a place.
 *
 *     TP_BEGIN(client, kernel, "matmul", TP_INT("rows", n), TP_TEXT("layout", "NHWC"));
 *     ...
 *     TP_END(client, kernel);
 *
 *     traceplane::span s(client, kernel, TP_NAME("matmul"));   // C++: ends by itself
 */
#ifndef TP_PRODUCER_MACROS_H
#define TP_PRODUCER_MACROS_H

#include <traceplane/record.h>

/* As those of the system: "..." may stand for nothing here, which -Wpedantic minds
 * before C23 and C++20 wherever the macros are used. */
#pragma GCC system_header

/* The number of a string literal. GNU C: a statement expression. */
#define TP_NAME(literal)                                                 \
    __extension__({                                                      \
        static uint32_t tp_number_;                                      \
        uint32_t tp_n_ = __atomic_load_n(&tp_number_, __ATOMIC_RELAXED); \
        if (__builtin_expect(tp_n_ == 0, 0)) {                           \
            tp_n_ = tp_intern("" literal);                               \
            __atomic_store_n(&tp_number_, tp_n_, __ATOMIC_RELAXED);      \
        }                                                                \
        tp_n_;                                                           \
    })

/* An argument with a whole number. key  of tp_intern(). */
static inline struct tp_field tp_field_int(uint32_t key, int64_t v)
{
    struct tp_field f;

    f.key = key;
    f.kind = TP_FIELD_INT;
    f.value.i = v;
    return f;
}

/* As tp_field_int() for a double. */
static inline struct tp_field tp_field_double(uint32_t key, double v)
{
    struct tp_field f;

    f.key = key;
    f.kind = TP_FIELD_DOUBLE;
    f.value.d = v;
    return f;
}

/* As tp_field_int() for a truth value. */
static inline struct tp_field tp_field_bool(uint32_t key, int v)
{
    struct tp_field f = tp_field_int(key, v != 0);

    f.kind = TP_FIELD_BOOL;
    return f;
}

/* As tp_field_int() for a text that lives until exit (copy 0) or is copied (1). */
static inline struct tp_field tp_field_text(uint32_t key, const char *s, int copy)
{
    struct tp_field f;

    f.key = key;
    f.kind = copy ? TP_FIELD_COPY : TP_FIELD_TEXT;
    f.value.s = s;
    return f;
}

#define TP_INT(key, v) tp_field_int(TP_NAME(key), (int64_t)(v))
#define TP_DOUBLE(key, v) tp_field_double(TP_NAME(key), (v))
#define TP_BOOL(key, v) tp_field_bool(TP_NAME(key), (v) ? 1 : 0)
#define TP_TEXT(key, s) tp_field_text(TP_NAME(key), (s), 0) /* lives until exit */
#define TP_COPY(key, s) tp_field_text(TP_NAME(key), (s), 1)

#define TP_IS_ON(client, type) __builtin_expect(tp_enabled((client), (type)) != 0, 0)

/* Calls a function with the arguments as struct tp_fields `tp_all_`. The first element
 * is there so that an empty list is no special case. */
#define TP_WITH_FIELDS_(call, ...)                                               \
    do {                                                                         \
        const struct tp_field tp_items_[] = {tp_field_int(0, 0), ##__VA_ARGS__}; \
        const struct tp_fields tp_all_ = {                                       \
            tp_items_ + 1, sizeof(tp_items_) / sizeof(tp_items_[0]) - 1};        \
        call;                                                                    \
    } while (0)

#define TP_IF_ON_(client, type, call, ...)        \
    do {                                          \
        if (TP_IS_ON((client), (type)))           \
            TP_WITH_FIELDS_(call, ##__VA_ARGS__); \
    } while (0)

/* TP_BEGIN(client, type, "name", TP_INT("key", 1), ...); likewise TP_INSTANT. */
#define TP_BEGIN(client, type, name, ...)                                       \
    TP_IF_ON_(client, type, tp_begin((client), (type), TP_NAME(name), tp_all_), \
              ##__VA_ARGS__)
#define TP_INSTANT(client, type, name, ...)                                       \
    TP_IF_ON_(client, type, tp_instant((client), (type), TP_NAME(name), tp_all_), \
              ##__VA_ARGS__)

/* TP_ADD(client, type, TP_INT("bytes", n)): to the slice that is open. */
#define TP_ADD(client, type, ...) \
    TP_IF_ON_(client, type, tp_add((client), (type), tp_all_), ##__VA_ARGS__)

#define TP_END(client, type)            \
    do {                                \
        if (TP_IS_ON((client), (type))) \
            tp_end((client), (type));   \
    } while (0)

#define TP_COUNTER(client, type, name, v)                     \
    do {                                                      \
        if (TP_IS_ON((client), (type)))                       \
            tp_counter((client), (type), TP_NAME(name), (v)); \
    } while (0)

/* TP_COMPLETE(client, type, "name", &interval, TP_INT("key", 1), ...). */
#define TP_COMPLETE(client, type, name, when, ...)                           \
    TP_IF_ON_(client, type,                                                  \
              tp_complete((client), (type), TP_NAME(name), (when), tp_all_), \
              ##__VA_ARGS__)

#ifdef __cplusplus
namespace traceplane
{
/* A slice that lasts as long as the object. */
class span
{
  public:
    span(struct tp_client *client, unsigned type, uint32_t name)
        : client_(client), type_(type)
    {
        const struct tp_fields none = {nullptr, 0};

        if (TP_IS_ON(client, type))
            tp_begin(client, type, name, none);
    }
    ~span()
    {
        TP_END(client_, type_);
    }
    span(const span &) = delete;
    span &operator=(const span &) = delete;

    /* Add an argument. */
    void add(const struct tp_field &field)
    {
        const struct tp_fields one = {&field, 1};

        if (TP_IS_ON(client_, type_))
            tp_add(client_, type_, one);
    }

  private:
    struct tp_client *client_;
    unsigned type_;
};
} /* namespace traceplane */
#else
struct tp_scope_ {
    struct tp_client *client;
    unsigned type;
};

/* What TP_SCOPE() runs at the end of its block. */
static inline void tp_scope_end_(const struct tp_scope_ *scope)
{
    TP_END(scope->client, scope->type);
}

#define TP_JOIN2_(a, b) a##b
#define TP_JOIN_(a, b) TP_JOIN2_(a, b)

/* TP_SCOPE(client, type, "name", ...); a slice to the end of the block. */
#define TP_SCOPE(client, type, name, ...)                                     \
    const struct tp_scope_ TP_JOIN_(tp_scope_at_, __COUNTER__)                \
        __attribute__((cleanup(tp_scope_end_), unused)) = {(client), (type)}; \
    TP_BEGIN(client, type, name, ##__VA_ARGS__)
#endif

#endif
