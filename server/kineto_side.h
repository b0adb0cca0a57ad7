/*
 * kineto_side.h - all of the service that has to do with Kineto processes, as one part.
 *
 * It reads the settings, opens the sockets, and runs the listener and the collector. A
 * socket that cannot be had is a line in the log, and the rest of the service runs. One
 * thread.
 */
#ifndef TP_SERVER_KINETO_SIDE_H
#define TP_SERVER_KINETO_SIDE_H

struct tp_app;
struct tp_err;
struct tp_kineto_opts;
struct tp_kineto_side;

/*
 * Read the settings of app->config, before the engine is there.
 *
 * out   set on success; NULL when the settings want no Kineto at all.
 * opts  set likewise: for the engine; lives as long as *out.
 *
 * TP_EINVAL  a setting. TP_ENOMEM.
 */
int tp_kineto_side_new(struct tp_app *app, struct tp_kineto_side **out,
                       const struct tp_kineto_opts **opts, struct tp_err *err);

/*
 * Log it when others could have a process of another user write elsewhere: the service
 * is not root, so that all may write into its folder, and the kernel lets them.
 *
 * settings  the directory with the kernel's: TP_KINETO_NODE_SETTINGS.
 */
void tp_kineto_side_check_node(struct tp_kineto_side *k, const char *settings);

/* Open the sockets and start the threads, once engine and workers are there; what does
 * not work is logged. NULL is allowed. */
void tp_kineto_side_start(struct tp_kineto_side *k);

/* End the threads and close the sockets. NULL is allowed. */
void tp_kineto_side_stop(struct tp_kineto_side *k);

/* Release what is stopped, after the workers are stopped. NULL is allowed. */
void tp_kineto_side_free(struct tp_kineto_side *k);

#endif
