/*
 * exec_close.h - make the descriptors of libcurl that it keeps to itself close on exec.
 *
 * The sockets to the service are opened by link.c, as they ought to be; this is about
 * the pair that curl_multi_wakeup() writes to. It opens nothing that stays open and
 * changes no descriptor of anybody else. Called by the thread that makes a multi
 * handle, before others know of it.
 */
#ifndef TP_PRODUCER_EXEC_CLOSE_H
#define TP_PRODUCER_EXEC_CLOSE_H

/*
 * Find the wakeup pair of a multi handle and set FD_CLOEXEC on it. An exec() in
 * another thread between curl_multi_init() and this call may still inherit it.
 *
 * multi  CURLM *; without transfers. Borrowed. A wakeup that is due is taken.
 *
 * Where the pair cannot be told for sure (no /proc, more than 256 unix sockets that
 * stay open on exec) nothing is changed; neither where libcurl has set the flag itself.
 */
void tp_exec_close_wakeup(void *multi);

#endif
