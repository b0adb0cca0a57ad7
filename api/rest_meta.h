/*
 * rest_meta.h - handlers about the service itself.
 *
 * One thread at a time.
 */
#ifndef TP_API_REST_META_H
#define TP_API_REST_META_H

struct tp_call;

/* GET /healthz: the process answers. */
void tp_rest_health(struct tp_call *call);

/* GET /readyz: it can do its work, else 503 with the reason. */
void tp_rest_readiness(struct tp_call *call);

/* GET /metrics, in the text format of Prometheus. */
void tp_rest_metrics(struct tp_call *call);

/* GET /version. */
void tp_rest_version(struct tp_call *call);

/* GET /openapi.yaml: the document that describes all this. */
void tp_rest_openapi(struct tp_call *call);

/* GET /: a page of links. */
void tp_rest_index(struct tp_call *call);

#endif
