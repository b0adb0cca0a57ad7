/*
 * make_view.h - copy a trace into a view.
 *
 * The caller holds the control lock; the view needs none.
 */
#ifndef TP_ENGINE_MAKE_VIEW_H
#define TP_ENGINE_MAKE_VIEW_H

#include "engine/model.h"

enum tp_view_mode {
    TP_VIEW_FULL,
    TP_VIEW_BRIEF,     /* without history, members and streams */
    TP_VIEW_AS_CREATED /* state, history and counts as the first answer had them */
};

/* Make a view. TP_ENOMEM: none was made. */
int tp_make_view(const struct tp_trace *t, enum tp_view_mode mode,
                 struct tp_trace_view **out, struct tp_err *err);

#endif
