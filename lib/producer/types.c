/*
 * types.c - the types of a client, by the registry that the service has too.
 */
#include <traceplane/traceplane.h>

#include "base/err.h"
#include "core/registry.h"
#include "producer/recorder_state.h"

const char *tp_version(void)
{
    return TP_VERSION;
}

int tp_register_type(struct tp_client *client, const char *plugin,
                     const char *type_name, enum tp_kind kind, const char *unit,
                     unsigned *type, struct tp_err *err)
{
    static const enum tp_type_kind kinds[] = {TP_TYPE_KIND_UNSET, TP_TYPE_SLICE,
                                              TP_TYPE_INSTANT, TP_TYPE_COUNTER};
    struct tp_recorder *r = tp_recorder_of(client);
    struct tp_type_spec spec = {.plugin = tp_str_of(plugin),
                                .type_name = tp_str_of(type_name),
                                .unit = tp_str_of(unit)};
    struct tp_registration registration;
    int rc;

    if (r == NULL)
        return tp_fail(err, TP_ESTATE, "the client is off");
    if ((unsigned)kind >= sizeof(kinds) / sizeof(*kinds))
        return tp_fail(err, TP_EINVAL, "there is no kind %d of types", (int)kind);
    spec.kind = kinds[kind];
    rc = tp_recorder_register(r, &spec, &registration, err);
    if (rc != TP_OK)
        return rc;
    *type = registration.id;
    if (registration.is_new)
        tp_recorder_call_agent(r);
    return TP_OK;
}

int tp_find_type(struct tp_client *client, const char *name, unsigned *type,
                 struct tp_err *err)
{
    struct tp_recorder *r = tp_recorder_of(client);

    return tp_activity_from_string(r == NULL ? NULL : r->registry, tp_str_of(name),
                                   type, NULL, err);
}
