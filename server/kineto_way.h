/*
 * kineto_way.h - whether a path leads through directories that nobody else can change.
 *
 * Who may rename what is in one of them could put another folder, or a link, in the
 * place of what is below, and a process that is told the path would write where that
 * leads. Looks and changes nothing. No state; any thread.
 */
#ifndef TP_SERVER_KINETO_WAY_H
#define TP_SERVER_KINETO_WAY_H

struct tp_err;

#define TP_KINETO_WAY_LINKS_MAX 40 /* as many as Linux follows */

/*
 * Check all directories from the root to path, path included. Each belongs to us, to
 * root or to who owns the root directory, and nobody else may write to it, or it is
 * sticky; a link that is followed belongs to one of them.
 *
 * path  absolute.
 *
 * TP_EDENIED  one of them is not so, or is no directory. TP_EIO.
 */
int tp_kineto_way_check(const char *path, struct tp_err *err);

#endif
