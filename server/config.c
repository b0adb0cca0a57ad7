/*
 * config.c - the table, and three readers that feed it.
 *
 * A reader finds a name in the table (or among the limits) and gives text to set().
 * Lists are replaced by a source of higher rank, never mixed with it.
 */
#include "server/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/names.h"

enum source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_FLAGS };
enum kind { TEXT, LIST, NUMBER };

#define NAME_BYTES 64
#define LINE_BYTES 4096

struct setting {
    const char *name;
    enum kind kind;
    size_t offset;
    const char *value;   /* how the value is called in the usage text */
    const char *initial; /* NULL: made up in tp_config_load() */
    const char *choices; /* "a|b", or NULL for anything */
    const char *help;
};

#define AT(field) offsetof(struct tp_config, field)

static const struct setting settings[] = {
    {"listen", LIST, AT(listen), "ADDR:PORT", NULL, NULL,
     "where to listen; also [V6]:PORT or unix:PATH; repeatable; port 0 picks one "
     "(default 127.0.0.1:8750 and [::1]:8750)"},
    {"data-dir", TEXT, AT(data_dir), "DIR", NULL, NULL,
     "where traces are kept (default $XDG_DATA_HOME/traceplane, or /var/lib/traceplane "
     "for root)"},
    {"store", TEXT, AT(store), "URL", "", NULL,
     "where rows are kept: sqlite:PATH (default a file in the data directory)"},
    {"on-collision", TEXT, AT(on_collision), "POLICY", "reject", "reject|probe",
     "what becomes of a second type with the same id: reject or probe"},
    {"durability", TEXT, AT(durability), "LEVEL", "process", "process|disk",
     "what acknowledged data survives: process (kill -9) or disk (a loss of power)"},
    {"allow-host", LIST, AT(allow_host), "NAME", NULL, NULL,
     "a further name in Host headers that is this service; repeatable"},
    {"allow-origin", LIST, AT(allow_origin), "ORIGIN", NULL, NULL,
     "a web origin whose pages may call this service; repeatable"},
    {"kineto-socket", TEXT, AT(kineto_socket), "NAME", "dynolog", NULL,
     "the abstract socket that PyTorch processes with KINETO_USE_DAEMON look for; "
     "empty "
     "= none"},
    {"kineto-socket-dir", LIST, AT(kineto_dirs), "DIR", NULL, NULL,
     "a directory for such a socket, as KINETO_IPC_SOCKET_DIR of the processes; "
     "repeatable"},
    {"kineto-trace-dir", TEXT, AT(kineto_trace_dir), "DIR", "", NULL,
     "where those processes leave their files until they are taken over; must be below "
     "/tmp or their KINETO_ONDEMAND_TRACE_DIR (default /tmp/traceplane-UID)"},
    {"kineto-allow-uid", LIST, AT(kineto_uids), "UID", NULL, NULL,
     "a user besides our own whose PyTorch processes may be traced, or any; "
     "repeatable"},
    {"dynolog-listen", TEXT, AT(dynolog_listen), "ADDR:PORT", "", NULL,
     "where to answer dynolog's RPC, for scripts that call dyno gputrace: "
     "localhost:1778; loopback only (default: nowhere)"},
    {"dynolog-log-dir", LIST, AT(dynolog_log_dirs), "DIR", NULL, NULL,
     "a directory below which a request of dynolog's may name a file (--log-file), "
     "which is then put there with the rights of the process's user; repeatable"},
    {"ready-file", TEXT, AT(ready_file), "PATH", "", NULL,
     "write the addresses to PATH, a line each, when listening"},
    {"log-level", TEXT, AT(log_level), "LEVEL", "info", "error|warning|info|debug",
     "what is logged on standard error: error, warning, info (with audit) or debug"},
    {"http-threads", NUMBER, AT(http_threads), "N", "0", NULL,
     "threads that serve HTTP; 0 = one a core"},
    {"seal-threads", NUMBER, AT(seal_threads), "N", "0", NULL,
     "threads that finish traces and open downloads; 0 = one a core"},
    {"idle-timeout-s", NUMBER, AT(idle_timeout_s), "N", "60", NULL,
     "seconds after which a connection without traffic is closed"},
    {"http-buffer-bytes", NUMBER, AT(http_buffer_bytes), "N", "16384", NULL,
     "memory of one connection"},
};

#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))

static void *field_of(struct tp_config *c, const struct setting *s)
{
    return (char *)c + s->offset;
}

static const void *const_field_of(const struct tp_config *c, const struct setting *s)
{
    return (const char *)c + s->offset;
}

static const struct setting *find(struct tp_str name)
{
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (tp_str_is(name, settings[i].name))
            return &settings[i];
    return NULL;
}

static void clear_list(struct tp_config_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i]);
    list->n = 0;
}

static int set_text(char **field, const char *text, struct tp_err *err)
{
    char *copy = strdup(text);

    if (copy == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the settings");
    free(*field);
    *field = copy;
    return TP_OK;
}

static int set_list(struct tp_config_list *list, const char *text, enum source source,
                    const char *name, struct tp_err *err)
{
    if (list->source != (int)source)
        clear_list(list);
    list->source = (int)source;
    if (*text == '\0')
        return TP_OK;
    if (list->n == TP_CONFIG_LIST_MAX)
        return tp_fail(err, TP_EINVAL, "'%s' is given more than %d times", name,
                       TP_CONFIG_LIST_MAX);
    list->items[list->n] = strdup(text);
    if (list->items[list->n] == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the settings");
    list->n++;
    return TP_OK;
}

static int set_number(uint64_t *field, const char *text, const char *name,
                      struct tp_err *err)
{
    char *end;
    unsigned long long v;

    errno = 0;
    v = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end != '\0' || errno != 0 || v > 1u << 30)
        return tp_fail(err, TP_EINVAL, "'%s' must be a number of 0 to %u, not '%.64s'",
                       name, 1u << 30, text);
    *field = v;
    return TP_OK;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t n = strlen(text);

    for (const char *p = choices; p != NULL && n > 0; p = strchr(p, '|')) {
        p += *p == '|';
        if (strcspn(p, "|") == n && memcmp(p, text, n) == 0)
            return true;
    }
    return false;
}

static int set(struct tp_config *c, const struct setting *s, const char *text,
               enum source source, struct tp_err *err)
{
    if (s->choices != NULL && !is_choice(s->choices, text))
        return tp_fail(err, TP_EINVAL, "'%s' must be one of %s, not '%.64s'", s->name,
                       s->choices, text);
    switch (s->kind) {
    case LIST:
        return set_list(field_of(c, s), text, source, s->name, err);
    case NUMBER:
        return set_number(field_of(c, s), text, s->name, err);
    case TEXT:
    default:
        return set_text(field_of(c, s), text, err);
    }
}

static int fail_unknown(struct tp_str name, struct tp_err *err)
{
    struct tp_names_nearest near;
    size_t n;
    const struct tp_limit_info *limits = tp_limits_table(&n);
    int len = (int)(name.len < NAME_BYTES ? name.len : NAME_BYTES);

    tp_names_init(&near, name);
    for (size_t i = 0; i < N_SETTINGS; i++)
        tp_names_offer(&near, tp_str_of(settings[i].name));
    for (size_t i = 0; i < n; i++)
        tp_names_offer(&near, tp_str_of(limits[i].name));
    if (near.n == 0)
        return tp_fail(err, TP_EINVAL, "there is no setting '%.*s'", len, name.ptr);
    return tp_fail(err, TP_EINVAL, "there is no setting '%.*s'; did you mean '%.*s'",
                   len, name.ptr, (int)near.found[0].name.len, near.found[0].name.ptr);
}

/* The limit of exactly that name; the shorter forms of tp_limits_find() are not flags.
 * */
static bool is_limit(struct tp_str name)
{
    const struct tp_limit_info *info = tp_limits_find(name);

    return info != NULL && tp_str_is(name, info->name);
}

static int set_by_name(struct tp_config *c, struct tp_str name, const char *text,
                       enum source source, struct tp_err *err)
{
    const struct setting *s = find(name);

    if (s != NULL)
        return set(c, s, text, source, err);
    if (is_limit(name))
        return tp_limits_set(&c->limits, name, tp_str_of(text), err);
    return fail_unknown(name, err);
}

/* Cut blanks off both ends of a line, in place. */
static char *trim(char *line)
{
    char *end;

    while (isspace((unsigned char)*line))
        line++;
    end = line + strlen(line);
    while (end > line && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return line;
}

static int load_line(struct tp_config *c, char *line, struct tp_err *err)
{
    char *eq;
    char *name;

    line = trim(line);
    if (*line == '\0' || *line == '#')
        return TP_OK;
    eq = strchr(line, '=');
    if (eq == NULL)
        return tp_fail(err, TP_EINVAL, "a line must be 'name = value'");
    *eq = '\0';
    name = trim(line);
    return set_by_name(c, tp_str_of(name), trim(eq + 1), FROM_FILE, err);
}

/*
 * Read one line of at most LINE_BYTES - 2 bytes. False at the end of the file. What
 * fgets() leaves alone stays '\n', so that the last NUL is its own, and one before it
 * came from the file.
 */
static bool read_line(FILE *f, char *line, const char **mistake)
{
    const char *end;

    memset(line, '\n', LINE_BYTES);
    if (fgets(line, LINE_BYTES, f) == NULL)
        return false;
    end = memrchr(line, '\0', LINE_BYTES);
    if (end == line + LINE_BYTES - 1)
        *mistake = "the line is too long";
    else if (strlen(line) < (size_t)(end - line))
        *mistake = "the line holds a NUL";
    return true;
}

static int load_file(struct tp_config *c, const char *path, struct tp_err *err)
{
    FILE *f = fopen(path, "re");
    const char *mistake = NULL;
    char line[LINE_BYTES];
    int rc = TP_OK;

    if (f == NULL)
        return tp_fail(err, TP_EIO, "cannot read '%s': %m", path);
    for (unsigned n = 1; rc == TP_OK && read_line(f, line, &mistake); n++) {
        if (mistake != NULL)
            rc = tp_fail(err, TP_EINVAL, "%s", mistake);
        else
            rc = load_line(c, line, err);
        if (rc != TP_OK)
            rc = tp_fail_prefix(err, "%s line %u", path, n);
    }
    if (rc == TP_OK && ferror(f))
        rc = tp_fail(err, TP_EIO, "cannot read '%s'", path);
    fclose(f);
    return rc;
}

/* "TRACEPLANE_DATA_DIR" becomes "data-dir"; false when it is not of that kind. */
static bool name_of_variable(const char *entry, char *name, const char **value)
{
    static const char prefix[] = "TRACEPLANE_";
    const char *eq = strchr(entry, '=');
    size_t n = 0;

    if (eq == NULL || strncmp(entry, prefix, sizeof(prefix) - 1) != 0)
        return false;
    for (const char *p = entry + sizeof(prefix) - 1; p < eq; p++) {
        if (n + 1 == NAME_BYTES)
            return false;
        name[n++] = *p == '_' ? '-' : (char)tolower((unsigned char)*p);
    }
    name[n] = '\0';
    *value = eq + 1;
    return true;
}

/* Variables of that prefix that are no settings belong to the client programs. */
static int load_environment(struct tp_config *c, char **environment, struct tp_err *err)
{
    for (; environment != NULL && *environment != NULL; environment++) {
        char name[NAME_BYTES];
        const char *value = "";
        int rc;

        if (!name_of_variable(*environment, name, &value) ||
            (find(tp_str_of(name)) == NULL && !is_limit(tp_str_of(name))))
            continue;
        rc = set_by_name(c, tp_str_of(name), value, FROM_ENVIRONMENT, err);
        if (rc != TP_OK)
            return tp_fail_prefix(err, "environment");
    }
    return TP_OK;
}

static bool is_word_flag(struct tp_config *c, const char *arg)
{
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
        c->wants_help = true;
    else if (strcmp(arg, "--version") == 0)
        c->wants_version = true;
    else if (strcmp(arg, "--print-config") == 0)
        c->wants_print = true;
    else
        return false;
    return true;
}

/* Take argv[*i], and argv[*i + 1] when it holds the value. */
static int split_flag(int argc, char **argv, int *i, struct tp_str *name,
                      const char **value, struct tp_err *err)
{
    const char *arg = argv[*i];
    const char *eq = strchr(arg, '=');

    if (strncmp(arg, "--", 2) != 0 || arg[2] == '\0')
        return tp_fail(err, TP_EINVAL, "'%.64s' is not a flag; see --help", arg);
    *name =
        (struct tp_str){arg + 2, eq == NULL ? strlen(arg + 2) : (size_t)(eq - arg - 2)};
    if (eq != NULL) {
        *value = eq + 1;
        return TP_OK;
    }
    if (!tp_str_is(*name, "config") && find(*name) == NULL && !is_limit(*name))
        return fail_unknown(*name, err);
    if (*i + 1 == argc)
        return tp_fail(err, TP_EINVAL, "'%.64s' needs a value", arg);
    *value = argv[++*i];
    return TP_OK;
}

/* First the file is looked for, then the flags are set, since they win. */
static int load_flags(struct tp_config *c, int argc, char **argv, const char **file,
                      struct tp_err *err)
{
    for (int i = 1; i < argc; i++) {
        struct tp_str name;
        const char *value = "";
        int rc;

        if (is_word_flag(c, argv[i]))
            continue;
        rc = split_flag(argc, argv, &i, &name, &value, err);
        if (rc != TP_OK)
            return rc;
        if (tp_str_is(name, "config")) {
            if (file != NULL)
                *file = value;
        } else if (file == NULL) {
            rc = set_by_name(c, name, value, FROM_FLAGS, err);
        }
        if (rc != TP_OK)
            return tp_fail_prefix(err, "--%.*s", (int)name.len, name.ptr);
    }
    return TP_OK;
}

static int set_defaults(struct tp_config *c, struct tp_err *err)
{
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    char path[LINE_BYTES] = "/var/lib/traceplane";
    int rc = TP_OK;

    for (size_t i = 0; i < N_SETTINGS && rc == TP_OK; i++)
        if (settings[i].initial != NULL)
            rc = set(c, &settings[i], settings[i].initial, FROM_DEFAULT, err);
    if (geteuid() != 0 && data != NULL && data[0] == '/')
        snprintf(path, sizeof(path), "%s/traceplane", data);
    else if (geteuid() != 0 && home != NULL && home[0] == '/')
        snprintf(path, sizeof(path), "%s/.local/share/traceplane", home);
    return rc == TP_OK ? set_text(&c->data_dir, path, err) : rc;
}

int tp_config_load(int argc, char **argv, char **environment, struct tp_config *out,
                   struct tp_err *err)
{
    struct tp_config c = {.limits = tp_limits_default()};
    const char *file = NULL;
    int rc = set_defaults(&c, err);

    if (rc == TP_OK)
        rc = load_flags(&c, argc, argv, &file, err);
    if (rc == TP_OK && file == NULL)
        for (char **e = environment; e != NULL && *e != NULL; e++)
            if (strncmp(*e, "TRACEPLANE_CONFIG=", 18) == 0 && (*e)[18] != '\0')
                file = *e + 18;
    if (rc == TP_OK && file != NULL)
        rc = load_file(&c, file, err);
    if (rc == TP_OK)
        rc = load_environment(&c, environment, err);
    if (rc == TP_OK)
        rc = load_flags(&c, argc, argv, NULL, err);
    if (rc != TP_OK) {
        tp_config_fini(&c);
        return rc;
    }
    *out = c;
    return TP_OK;
}

void tp_config_fini(struct tp_config *config)
{
    for (size_t i = 0; i < N_SETTINGS; i++) {
        void *field = field_of(config, &settings[i]);

        if (settings[i].kind == LIST) {
            clear_list(field);
        } else if (settings[i].kind == TEXT) {
            free(*(char **)field);
            *(char **)field = NULL;
        }
    }
}

void tp_config_usage(FILE *out)
{
    size_t n;
    const struct tp_limit_info *limits = tp_limits_table(&n);

    fprintf(out, "usage: traceplaned [--NAME VALUE]...\n\n"
                 "The control plane for accelerator profiling. Each setting is also an "
                 "environment\nvariable (--data-dir is TRACEPLANE_DATA_DIR) and a line "
                 "'name = value' of --config FILE.\n\nSettings:\n"
                 "  --config FILE\n        read settings from FILE\n");
    for (size_t i = 0; i < N_SETTINGS; i++) {
        const struct setting *s = &settings[i];

        fprintf(out, "  --%s %s\n        %s", s->name, s->value, s->help);
        if (s->initial != NULL && *s->initial != '\0')
            fprintf(out, " (default %s)", s->initial);
        fprintf(out, "\n");
    }
    fprintf(out, "\nLimits (bytes take K, M, G, T; times take ms, s, m, h):\n");
    for (size_t i = 0; i < n; i++)
        fprintf(out, "  --%s N\n        %s (%s, default %llu)\n", limits[i].name,
                limits[i].help, limits[i].unit,
                (unsigned long long)limits[i].default_value);
    fprintf(out,
            "\nOther flags:\n  --print-config  print the settings in effect and end\n"
            "  --version       print the version and end\n"
            "  --help          print this text and end\n");
}

static void print_list(const struct tp_config_list *list, const char *name, FILE *out)
{
    for (size_t i = 0; i < list->n; i++)
        fprintf(out, "%s = %s\n", name, list->items[i]);
}

void tp_config_print(const struct tp_config *config, FILE *out)
{
    size_t n;
    const struct tp_limit_info *limits = tp_limits_table(&n);

    for (size_t i = 0; i < N_SETTINGS; i++) {
        const struct setting *s = &settings[i];
        const void *field = const_field_of(config, s);

        if (s->kind == LIST)
            print_list(field, s->name, out);
        else if (s->kind == NUMBER)
            fprintf(out, "%s = %llu\n", s->name,
                    (unsigned long long)*(const uint64_t *)field);
        else
            fprintf(out, "%s = %s\n", s->name, *(char *const *)field);
    }
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s = %llu\n", limits[i].name,
                (unsigned long long)tp_limits_get(&config->limits, &limits[i]));
}
