#include "core/detail.h"

#include <string.h>

#include "base/names.h"
#include "core/registry.h"

void tp_detail_init(struct tp_registry_detail *detail, enum tp_registry_reason reason)
{
    if (detail == NULL)
        return;
    memset(detail, 0, sizeof(*detail));
    detail->reason = reason;
    detail->field = "";
}

void tp_detail_add(struct tp_registry_detail *detail, struct tp_str name)
{
    size_t len = name.len;

    if (detail == NULL)
        return;
    detail->n_found++;
    if (detail->n_names == TP_REGISTRY_DETAIL_NAMES)
        return;
    if (len >= TP_ACTIVITY_STRING_BYTES)
        len = TP_ACTIVITY_STRING_BYTES - 1;
    memcpy(detail->names[detail->n_names], name.ptr, len);
    detail->names[detail->n_names][len] = '\0';
    detail->n_names++;
}

void tp_detail_suggest(struct tp_registry_detail *detail, const struct tp_registry *r,
                       struct tp_str wanted)
{
    const struct tp_type *types[TP_ACTIVITY_CUSTOM_COUNT];
    struct tp_names_nearest near;
    size_t n;

    if (detail == NULL)
        return;
    tp_detail_init(detail, TP_REGISTRY_UNKNOWN);
    tp_names_init(&near, wanted);
    for (unsigned id = 0; id < TP_ACTIVITY_STATIC_COUNT; id++)
        tp_names_offer(&near, tp_str_of(tp_activity_cat(id)));
    n = r == NULL ? 0 : tp_registry_entries(r, types);
    for (size_t i = 0; i < n; i++)
        tp_names_offer(&near, tp_type_full_name(types[i]));
    for (size_t i = 0; i < near.n; i++)
        tp_detail_add(detail, near.found[i].name);
}
