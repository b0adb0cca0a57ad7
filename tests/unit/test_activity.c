/*
 * test_activity.c - the static table is Kineto's, and ids are the RFC's, bit for bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "core/activity.h"
#include "core/registry.h"

/* Known answers of the RFC's computeId(); the last four share their last 31 bytes in
 * pairs. */
static const struct {
    const char *plugin;
    const char *type_name;
    uint32_t hash;
    unsigned id;
} known[] = {
    {"ascend", "KERNEL", 0x221b083c, 154},
    {"ascend", "SYNC", 0xfc662636, 161},
    {"ascend", "MEMCPY", 0x44e2dfea, 126},
    {"ascend", "HW_COUNTER", 0x0a797ef0, 157},
    {"ascend", "HCCL", 0x7c9a8d8c, 124},
    {"ascend", "AICORE", 0xcf3b4e3a, 137},
    {"ascend", "AICPU", 0xa9b2a512, 205},
    {"ascend", "REDUCE_SCATTER", 0x85384c90, 154},
    {"ascend", "STREAM_SYNC", 0x7b920516, 126},
    {"ascend", "MTE", 0x17b251a2, 84},
    {"ascend", "NIC", 0x7dfcaaa2, 84},
    {"ascend", "BARRIER", 0x86915a78, 84},
    {"ascend", "USER_ANNOTATION", 0x4c1eb4a8, 84},
    {"habana", "SYNC", 0xd3acb476, 76},
    {"habana", "KERNEL", 0x9fe2833c, 201},
    {"habana", "HW_COUNTER", 0xc78e2ef0, 217},
    {"habana", "TPC", 0xfc6fcd16, 75},
    {"habana", "MME", 0xf9405fa6, 234},
    {"habana", "DMA", 0xfda36666, 200},
    {"habana", "PREFETCH", 0x6d8c172c, 201},
    {"habana", "GRAPH_LAUNCH", 0x44f613dc, 113},
    {"habana", "COLLECTIVE", 0x3c8215ca, 113},
    {"npu", "KERNEL", 0xc74a973c, 109},
    {"npu", "SYNC", 0x656ad376, 226},
    {"npu", "USER_ANNOTATION", 0x18d4b4a8, 109},
    {"openreg", "KERNEL", 0xd58aaf3c, 126},
    {"openreg", "SYNC", 0x8586b176, 82},
    {"openreg", "HW_COUNTER", 0xa0ffeef0, 103},
    {"openreg", "USER_ANNOTATION", 0x5884b4a8, 103},
    {"openreg", "RUNTIME", 0xb8cd9ac6, 181},
    {"openreg", "TASK", 0xdf2651c2, 181},
    {"openreg", "RECV", 0x58e2ae08, 181},
    {"mlu", "KERNEL", 0x4b78633c, 114},
    {"musa", "KERNEL", 0xa1b0b93c, 242},
    {"spyre", "KERNEL", 0xb78c0f3c, 173},
    {"xpu", "SCOPE", 0xe97c3532, 235},
    {"neuron", "KERNEL", 0xa089143c, 252},
    {"neuron", "KERNEL_LAUNCH", 0x1395f9dc, 252},
    {"neuron", "SYNC", 0xefd50f36, 81},
    {"neuron", "SCHEDULER", 0x8a4c2820, 81},
    {"acme", "kernel", 0x26ebce7c, 143},
    {"A", "B", 0xf7140154, 192},
    {"test", "TEST", 0xcb61aa4c, 96},
    {"plugin", "type_name", 0xb25d5246, 173},
    {"ascend", "HARDWARE_PERFORMANCE_COUNTER_SAMPLE", 0x5432939a, 105},
    {"habana", "HARDWARE_PERFORMANCE_COUNTER_SAMPLE", 0x5432939a, 105},
    {"ascend", "COLLECTIVE_COMMUNICATION_KERNELS", 0x5072920e, 59},
    {"habana", "COLLECTIVE_COMMUNICATION_KERNELS", 0x5072920e, 59},
};

#define N_KNOWN (sizeof(known) / sizeof(known[0]))

static struct tp_registry *new_registry(enum tp_collision_policy policy)
{
    const struct tp_registry_options options = {.on_collision = policy};
    struct tp_registry *r = NULL;

    assert_int_equal(tp_registry_new(&options, &r, NULL), TP_OK);
    return r;
}

static unsigned add(struct tp_registry *r, const char *plugin, const char *type_name)
{
    const struct tp_type_spec spec = {.plugin = tp_str_of(plugin),
                                      .type_name = tp_str_of(type_name)};
    struct tp_registration reg;
    struct tp_err err = {0};

    if (tp_registry_register(r, &spec, &reg, NULL, &err) != TP_OK)
        fail_msg("%s.%s: %s", plugin, type_name, err.message);
    return reg.id;
}

static void test_every_known_answer_is_computed(void **state)
{
    (void)state;
    assert_int_equal(N_KNOWN, 48);
    for (size_t i = 0; i < N_KNOWN; i++) {
        struct tp_str plugin = tp_str_of(known[i].plugin);
        struct tp_str type_name = tp_str_of(known[i].type_name);

        if (tp_activity_hash(plugin, type_name) != known[i].hash ||
            tp_activity_compute_id(plugin, type_name) != known[i].id)
            fail_msg("%s.%s", known[i].plugin, known[i].type_name);
    }
}

/*
 * Two states of the hash are even, so they differ in bit 1 or higher. A shared byte
 * keeps the place of the lowest bit that differs, and the factor 1234 = 2 * 617 moves
 * it up by one. After 31 shared bytes it has left the 32 bits. After 30, half of all
 * pairs still differ.
 */
static void test_keys_that_share_their_last_31_bytes_have_one_hash(void **state)
{
    char a[64];
    char b[64];

    (void)state;
    for (size_t shared = 25; shared < 40; shared++) {
        bool always_equal = true;

        for (unsigned seed = 0; seed < 50; seed++) {
            memset(a, 0, sizeof(a));
            memset(b, 0, sizeof(b));
            snprintf(a, sizeof(a), "first%u", seed * 7919);
            snprintf(b, sizeof(b), "other%u", seed * 104729 + 1);
            for (size_t i = 0; i < shared; i++) {
                char c = (char)('A' + (seed + i * 31) % 26);

                a[strlen(a)] = c;
                b[strlen(b)] = c;
            }
            always_equal = always_equal &&
                           tp_activity_hash(tp_str_of("p"), tp_str_of(a)) ==
                               tp_activity_hash(tp_str_of("q"), tp_str_of(b));
        }
        if (always_equal != (shared >= 31))
            fail_msg("%zu shared bytes", shared);
    }
    assert_int_equal(tp_activity_hash(tp_str_of("ascend"),
                                      tp_str_of("HARDWARE_PERFORMANCE_COUNTER_SAMPLE")),
                     tp_activity_hash(tp_str_of("habana"),
                                      tp_str_of(
                                          "HARDWARE_PERFORMANCE_COUNTER_SAMPLE")));
}

static void test_static_types_are_those_of_kineto(void **state)
{
    static const char *const cats[] = {"cpu_op",
                                       "user_annotation",
                                       "gpu_user_annotation",
                                       "gpu_memcpy",
                                       "gpu_memset",
                                       "kernel",
                                       "external_correlation",
                                       "cuda_runtime",
                                       "cuda_driver",
                                       "cpu_instant_event",
                                       "python_function",
                                       "overhead",
                                       "mtia_runtime",
                                       "mtia_ccp_events",
                                       "mtia_insight",
                                       "cuda_sync",
                                       "cuda_event",
                                       "mtia_counters",
                                       "glow_runtime",
                                       "cuda_profiler_range",
                                       "hpu_op",
                                       "xpu_runtime",
                                       "xpu_driver",
                                       "collective_comm",
                                       "privateuse1_runtime",
                                       "privateuse1_driver",
                                       "xpu_scope_profiler",
                                       "xpu_sync",
                                       "hardware_counters"};

    (void)state;
    assert_int_equal(sizeof(cats) / sizeof(cats[0]), TP_ACTIVITY_STATIC_COUNT);
    assert_int_equal(TP_ACTIVITY_STATIC_COUNT, 29);
    assert_int_equal(TP_ACTIVITY_DEFAULT_COUNT, 18);
    for (unsigned id = 0; id < TP_ACTIVITY_STATIC_COUNT; id++) {
        const char *enum_name = tp_activity_enum_name(id);

        assert_string_equal(tp_activity_cat(id), cats[id]);
        assert_int_equal(tp_activity_find_cat(tp_str_of(cats[id])), id);
        assert_int_equal(tp_activity_find_enum_name(tp_str_of(enum_name)), id);
    }
    assert_string_equal(tp_activity_enum_name(5), "CONCURRENT_KERNEL");
    assert_null(tp_activity_cat(29));
    assert_null(tp_activity_enum_name(29));
    assert_int_equal(tp_activity_find_cat(tp_str_of("Kernel")), -1);
    assert_int_equal(tp_activity_find_enum_name(tp_str_of("kernel")), -1);
}

static void test_device_types_follow_pytorch(void **state)
{
    (void)state;
    for (unsigned id = 0; id < 300; id++) {
        const char *device = tp_device_type_name(tp_activity_device_type(id));

        if ((id >= 50) != (strcmp(device, "PrivateUse1") == 0))
            fail_msg("id %u is on %s", id, device);
    }
    assert_int_equal(tp_activity_device_type(TP_ACTIVITY_CONCURRENT_KERNEL),
                     TP_DEVICE_CUDA);
    assert_int_equal(tp_activity_device_type(TP_ACTIVITY_PRIVATEUSE1_DRIVER),
                     TP_DEVICE_CPU);
    assert_int_equal(tp_activity_device_type(TP_ACTIVITY_MTIA_INSIGHT), TP_DEVICE_MTIA);
    assert_int_equal(tp_activity_device_type(TP_ACTIVITY_HPU_OP), TP_DEVICE_HPU);
    assert_int_equal(tp_activity_device_type(TP_ACTIVITY_XPU_SCOPE_PROFILER),
                     TP_DEVICE_XPU);
    assert_int_equal(tp_activity_device_type(40), TP_DEVICE_CPU);
}

static void test_the_custom_range_is_50_to_254(void **state)
{
    (void)state;
    for (unsigned id = 0; id < 300; id++)
        assert_int_equal(tp_activity_is_custom(id), id >= 50 && id <= 254);
}

static void test_every_id_comes_back_from_its_text(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_PROBE);
    char text[TP_ACTIVITY_STRING_BYTES];

    (void)state;
    for (size_t i = 0; i < N_KNOWN; i++)
        add(r, known[i].plugin, known[i].type_name);
    for (int with_registry = 0; with_registry < 2; with_registry++) {
        const struct tp_registry *registry = with_registry ? r : NULL;

        for (unsigned id = 0; id < TP_ACTIVITY_IDS; id++) {
            size_t n = tp_activity_to_string(registry, id, text);
            unsigned back = 999;

            if (n != strlen(text) ||
                tp_activity_from_string(registry, tp_str_of(text), &back, NULL, NULL) !=
                    TP_OK ||
                back != id)
                fail_msg("id %u is '%s' and comes back as %u", id, text, back);
        }
    }
    tp_activity_to_string(r, 154, text);
    assert_string_equal(text, "ascend.KERNEL");
    tp_activity_to_string(r, 5, text);
    assert_string_equal(text, "kernel");
    tp_activity_to_string(r, 255, text);
    assert_string_equal(text, "255");
    tp_registry_free(r);
}

static void test_static_names_win_over_custom_ones(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_REJECT);
    unsigned id = 999;

    (void)state;
    add(r, "acme", "kernel");
    assert_int_equal(tp_activity_from_string(r, tp_str_of("kernel"), &id, NULL, NULL),
                     TP_OK);
    assert_int_equal(id, TP_ACTIVITY_CONCURRENT_KERNEL);
    assert_int_equal(
        tp_activity_from_string(r, tp_str_of("acme.kernel"), &id, NULL, NULL), TP_OK);
    assert_true(tp_activity_is_custom(id));
    tp_registry_free(r);
}

static void test_enum_names_are_taken_unless_a_custom_type_has_them(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_PROBE);
    struct tp_registry_detail detail;
    struct tp_str name = tp_str_of("USER_ANNOTATION");
    struct tp_err err = {0};
    unsigned id = 999;

    (void)state;
    assert_int_equal(tp_activity_from_string(r, name, &id, &detail, &err), TP_OK);
    assert_int_equal(id, TP_ACTIVITY_USER_ANNOTATION);
    add(r, "npu", "USER_ANNOTATION");
    assert_int_equal(tp_activity_from_string(r, name, &id, &detail, &err),
                     TP_EAMBIGUOUS);
    assert_int_equal(detail.reason, TP_REGISTRY_AMBIGUOUS);
    assert_int_equal(detail.n_names, 2);
    assert_string_equal(detail.names[0], "npu.USER_ANNOTATION");
    assert_string_equal(detail.names[1], "user_annotation");
    add(r, "ascend", "USER_ANNOTATION");
    assert_int_equal(tp_activity_from_string(r, name, &id, &detail, &err),
                     TP_EAMBIGUOUS);
    assert_int_equal(detail.n_names, 3);
    tp_registry_free(r);
}

static void test_numbers_stand_only_for_ids_without_a_name(void **state)
{
    static const char *const refused[] = {"5",   "28", "154", "256",
                                          "077", "-1", "7 ",  ""};
    struct tp_registry *r = new_registry(TP_COLLISION_REJECT);

    (void)state;
    add(r, "ascend", "KERNEL");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        unsigned id = 999;

        if (tp_activity_from_string(r, tp_str_of(refused[i]), &id, NULL, NULL) !=
                TP_ENOTFOUND ||
            id != 999)
            fail_msg("'%s' gave %u", refused[i], id);
    }
    tp_registry_free(r);
}

static void test_unknown_names_get_suggestions(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_REJECT);
    struct tp_registry_detail detail;
    struct tp_err err = {0};
    unsigned id = 999;

    (void)state;
    add(r, "ascend", "KERNEL");
    assert_int_equal(tp_activity_from_string(r, tp_str_of("ascend.KERNAL"), &id,
                                             &detail, &err),
                     TP_ENOTFOUND);
    assert_int_equal(detail.reason, TP_REGISTRY_UNKNOWN);
    assert_string_equal(detail.names[0], "ascend.KERNEL");
    assert_non_null(strstr(err.message, "ascend.KERNAL"));
    assert_int_equal(tp_activity_from_string(NULL, tp_str_of("gpu_memcopy"), &id,
                                             &detail, &err),
                     TP_ENOTFOUND);
    assert_string_equal(detail.names[0], "gpu_memcpy");
    assert_int_equal(id, 999);
    tp_registry_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_known_answer_is_computed),
        cmocka_unit_test(test_keys_that_share_their_last_31_bytes_have_one_hash),
        cmocka_unit_test(test_static_types_are_those_of_kineto),
        cmocka_unit_test(test_device_types_follow_pytorch),
        cmocka_unit_test(test_the_custom_range_is_50_to_254),
        cmocka_unit_test(test_every_id_comes_back_from_its_text),
        cmocka_unit_test(test_static_names_win_over_custom_ones),
        cmocka_unit_test(test_enum_names_are_taken_unless_a_custom_type_has_them),
        cmocka_unit_test(test_numbers_stand_only_for_ids_without_a_name),
        cmocka_unit_test(test_unknown_names_get_suggestions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
