/*
 * recorder.c - two threads around one buffer of events.
 *
 *   workers --> buffer (NDJSON) --> poster: POST /traces/{id}/events, every 100 ms
 *                   ^
 *   agent: POST /producers/{id}/sync, held by the service until there is a command
 *
 * The text of an event is made by the thread that recorded it; the lock is held for a
 * copy of some 200 bytes. A backend that records millions of events a second would keep
 * a ring for each thread instead.
 */
#include "recorder.h"

#include <curl/curl.h>
#include <json-c/json.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES (8u << 20)
#define EVENT_BYTES 2048
#define POST_PERIOD_NS (100u * 1000 * 1000)
#define ID_BYTES 64
#define URL_BYTES 512
#define REPLY_BYTES (1u << 16)

struct reply {
    char text[REPLY_BYTES];
    size_t len;
    long status;
};

static struct {
    struct recorder_opts opts;
    int type_ids[RECORDER_MAX_TYPES];
    char producer[ID_BYTES];
    pthread_t agent, poster;
    _Atomic unsigned on; /* bit set of the types that are wanted now */
    atomic_bool is_ending;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    char *buffer;
    size_t len;
    char trace[ID_BYTES]; /* what the buffer's events belong to; "" when none */
    unsigned wanted;      /* types of a prepared trace */
    bool is_posting;
    uint64_t emitted, dropped, seq;
    struct json_object *acks;      /* for the next sync */
    struct json_object *counts;    /* likewise: of traces that were stopped */
    char threads[EVENT_BYTES * 8]; /* metadata events, sent at each start */
    size_t threads_len;
    unsigned n_threads;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

uint64_t recorder_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static size_t take_reply(char *p, size_t size, size_t n, void *arg)
{
    struct reply *reply = arg;

    if (reply->len + size * n >= sizeof(reply->text))
        return 0;
    memcpy(reply->text + reply->len, p, size * n);
    reply->len += size * n;
    reply->text[reply->len] = '\0';
    return size * n;
}

/* One request; true when the service answered with success. */
static bool call(const char *method, const char *path, const char *type,
                 const char *body, size_t n, struct reply *reply)
{
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = NULL;
    char url[URL_BYTES], header[128];

    snprintf(url, sizeof(url), "%s%s", self.opts.url, path);
    snprintf(header, sizeof(header), "Content-Type: %s", type);
    headers = curl_slist_append(headers, header);
    reply->len = 0;
    reply->status = 0;
    reply->text[0] = '\0';
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (body != NULL) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
    }
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_reply);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply->status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return reply->status / 100 == 2;
}

/* As call() with a JSON body that is consumed; the parsed reply, or NULL. */
static struct json_object *call_json(const char *path, struct json_object *body)
{
    static _Thread_local struct reply reply;
    const char *text = json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN);
    bool is_good = call("POST", path, "application/json", text, strlen(text), &reply);

    json_object_put(body);
    if (!is_good) {
        fprintf(stderr, "treehash: POST %s: %ld %s\n", path, reply.status, reply.text);
        return NULL;
    }
    return json_tokener_parse(reply.text);
}

static void add_text(struct json_object *o, const char *key, const char *value)
{
    if (value != NULL)
        json_object_object_add(o, key, json_object_new_string(value));
}

static bool register_types(void)
{
    struct json_object *body = json_object_new_object();
    struct json_object *types = json_object_new_array();
    struct json_object *answer, *items;

    for (int i = 0; i < self.opts.n_types; i++) {
        const struct recorder_type *t = &self.opts.types[i];
        struct json_object *o = json_object_new_object();

        add_text(o, "plugin", self.opts.plugin);
        add_text(o, "type_name", t->type_name);
        add_text(o, "description", t->description);
        add_text(o, "kind", t->kind);
        add_text(o, "unit", t->unit);
        json_object_array_add(types, o);
    }
    add_text(body, "job", self.opts.job);
    json_object_object_add(body, "types", types);
    answer = call_json("/types", body);
    if (answer == NULL)
        return false;
    items = json_object_object_get(answer, "types");
    for (int i = 0; i < self.opts.n_types; i++)
        self.type_ids[i] = json_object_get_int(
            json_object_object_get(json_object_array_get_idx(items, (size_t)i), "id"));
    json_object_put(answer);
    return true;
}

static bool register_producer(void)
{
    struct json_object *body = json_object_new_object();
    struct json_object *answer;
    char host[64] = "", name[32];

    gethostname(host, sizeof(host) - 1);
    snprintf(name, sizeof(name), "rank-%d", self.opts.rank);
    add_text(body, "job", self.opts.job);
    add_text(body, "name", name);
    add_text(body, "kind", "native");
    add_text(body, "host", host);
    add_text(body, "backend", self.opts.plugin);
    json_object_object_add(body, "rank", json_object_new_int(self.opts.rank));
    json_object_object_add(body, "world_size",
                           json_object_new_int(self.opts.world_size));
    json_object_object_add(body, "pid", json_object_new_int(getpid()));
    answer = call_json("/producers", body);
    if (answer == NULL)
        return false;
    snprintf(self.producer, sizeof(self.producer), "%s",
             json_object_get_string(json_object_object_get(answer, "id")));
    json_object_put(answer);
    return true;
}

/* Send what is in the buffer to the trace that it belongs to. The lock is held by the
 * caller and given up meanwhile. */
static void post_buffer(void)
{
    static struct reply reply;
    char path[256], *text = self.buffer;
    size_t n = self.len;

    while (self.is_posting)
        pthread_cond_wait(&self.changed, &self.lock);
    text = self.buffer;
    n = self.len;
    if (n == 0 || self.trace[0] == '\0')
        return;
    snprintf(path, sizeof(path), "/traces/%s/events?producer=rank-%d&rank=%d&seq=%llu",
             self.trace, self.opts.rank, self.opts.rank,
             (unsigned long long)++self.seq);
    self.buffer = malloc(BUFFER_BYTES);
    self.len = 0;
    if (self.buffer == NULL)
        abort();
    self.is_posting = true;
    pthread_mutex_unlock(&self.lock);
    if (!call("POST", path, "application/x-ndjson", text, n, &reply))
        fprintf(stderr, "treehash: events not taken: %ld %s\n", reply.status,
                reply.text);
    free(text);
    pthread_mutex_lock(&self.lock);
    self.is_posting = false;
    pthread_cond_broadcast(&self.changed);
}

static void *run_poster(void *arg)
{
    (void)arg;
    while (!atomic_load(&self.is_ending)) {
        nanosleep(&(struct timespec){.tv_nsec = POST_PERIOD_NS}, NULL);
        pthread_mutex_lock(&self.lock);
        post_buffer();
        pthread_mutex_unlock(&self.lock);
    }
    return NULL;
}

/* The types of a prepare command as a bit set of ours. */
static unsigned wanted_types(struct json_object *ids)
{
    unsigned set = 0;

    for (size_t i = 0; i < json_object_array_length(ids); i++)
        for (int t = 0; t < self.opts.n_types; t++)
            if (json_object_get_int(json_object_array_get_idx(ids, i)) ==
                self.type_ids[t])
                set |= 1u << t;
    return set;
}

/* What was recorded for a trace and what of it was lost. */
static struct json_object *counts_of(const char *trace)
{
    struct json_object *o = json_object_new_object();
    struct json_object *dropped = json_object_new_object();

    add_text(o, "trace_id", trace);
    json_object_object_add(o, "emitted", json_object_new_uint64(self.emitted));
    json_object_object_add(dropped, "producer-ring-full",
                           json_object_new_uint64(self.dropped));
    json_object_object_add(o, "dropped", dropped);
    return o;
}

static void obey(struct json_object *command)
{
    const char *what =
        json_object_get_string(json_object_object_get(command, "command"));
    const char *trace =
        json_object_get_string(json_object_object_get(command, "trace_id"));
    struct json_object *ack = json_object_new_object();

    pthread_mutex_lock(&self.lock);
    if (strcmp(what, "prepare") == 0) {
        self.wanted = wanted_types(json_object_object_get(command, "types"));
        snprintf(self.trace, sizeof(self.trace), "%s", trace);
        self.emitted = self.dropped = self.seq = 0;
        self.len = 0;
    } else if (strcmp(what, "start") == 0 && strcmp(self.trace, trace) == 0) {
        memcpy(self.buffer, self.threads, self.threads_len);
        self.len = self.threads_len;
        self.emitted = self.n_threads;
        atomic_store(&self.on, self.wanted);
    } else { /* stop, cancel */
        atomic_store(&self.on, 0);
        while (self.len > 0) /* a worker may add its last slice while we post */
            post_buffer();
        json_object_array_add(self.counts, counts_of(trace));
        self.trace[0] = '\0';
    }
    add_text(ack, "trace_id", trace);
    add_text(ack, "command", what);
    json_object_array_add(self.acks, ack);
    pthread_mutex_unlock(&self.lock);
}

/* What a sync says: the acks that are due. */
static struct json_object *sync_body(void)
{
    struct json_object *body = json_object_new_object();

    pthread_mutex_lock(&self.lock);
    json_object_object_add(body, "acks", self.acks);
    json_object_object_add(body, "counts", self.counts);
    self.acks = json_object_new_array();
    self.counts = json_object_new_array();
    pthread_mutex_unlock(&self.lock);
    json_object_object_add(body, "wait_ms", json_object_new_int(1000));
    return body;
}

static void *run_agent(void *arg)
{
    char path[128];

    (void)arg;
    snprintf(path, sizeof(path), "/producers/%s/sync", self.producer);
    while (!atomic_load(&self.is_ending)) {
        struct json_object *answer = call_json(path, sync_body());
        struct json_object *commands;

        if (answer == NULL) {
            sleep(1);
            continue;
        }
        commands = json_object_object_get(answer, "commands");
        for (size_t i = 0; i < json_object_array_length(commands); i++)
            obey(json_object_array_get_idx(commands, i));
        json_object_put(answer);
    }
    return NULL;
}

bool recorder_start(const struct recorder_opts *opts)
{
    self.opts = *opts;
    self.buffer = malloc(BUFFER_BYTES);
    self.acks = json_object_new_array();
    self.counts = json_object_new_array();
    if (self.buffer == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
        return false;
    if (!register_types() || !register_producer())
        return false;
    return pthread_create(&self.agent, NULL, run_agent, NULL) == 0 &&
           pthread_create(&self.poster, NULL, run_poster, NULL) == 0;
}

void recorder_stop(void)
{
    static struct reply reply;
    char path[128];

    if (self.producer[0] == '\0')
        return;
    atomic_store(&self.is_ending, true);
    pthread_join(self.agent, NULL);
    pthread_join(self.poster, NULL);
    pthread_mutex_lock(&self.lock);
    post_buffer();
    pthread_mutex_unlock(&self.lock);
    snprintf(path, sizeof(path), "/producers/%s", self.producer);
    call("DELETE", path, "application/json", NULL, 0, &reply);
    curl_global_cleanup();
    json_object_put(self.acks);
    json_object_put(self.counts);
    free(self.buffer);
}

bool recorder_is_on(int type)
{
    return (atomic_load_explicit(&self.on, memory_order_relaxed) >> type & 1) != 0;
}

/* Append one line, or count it as dropped when the buffer is full. */
static void append(const char *text, int n)
{
    pthread_mutex_lock(&self.lock);
    if (self.trace[0] == '\0') { /* it began before the stop and ends after it */
        pthread_mutex_unlock(&self.lock);
        return;
    }
    self.emitted++;
    if (n < 0 || n >= EVENT_BYTES || self.len + (size_t)n > BUFFER_BYTES) {
        self.dropped++;
    } else {
        memcpy(self.buffer + self.len, text, (size_t)n);
        self.len += (size_t)n;
    }
    pthread_mutex_unlock(&self.lock);
}

static int thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

#define MICROSECONDS "%llu.%03u"
#define AS_MICROSECONDS(ns) (unsigned long long)((ns) / 1000), (unsigned)((ns) % 1000)

void recorder_slice(int type, const char *name, uint64_t start_ns, uint64_t bytes)
{
    uint64_t duration_ns = recorder_now_ns() - start_ns;
    struct json_object *quoted;
    char line[EVENT_BYTES];
    int n;

    if (!recorder_is_on(type))
        return;
    quoted = json_object_new_string(name);
    n = snprintf(line, sizeof(line),
                 "{\"ph\":\"X\",\"cat\":\"%s.%s\",\"name\":%s,\"pid\":%d,\"tid\":%d,"
                 "\"ts\":" MICROSECONDS ",\"dur\":" MICROSECONDS
                 ",\"args\":{\"bytes\":%llu}}\n",
                 self.opts.plugin, self.opts.types[type].type_name,
                 json_object_to_json_string_ext(quoted, JSON_C_TO_STRING_PLAIN),
                 getpid(), thread_id(), AS_MICROSECONDS(start_ns),
                 AS_MICROSECONDS(duration_ns), (unsigned long long)bytes);
    json_object_put(quoted);
    append(line, n);
}

void recorder_counter(int type, const char *name, uint64_t value)
{
    char line[EVENT_BYTES];
    uint64_t now = recorder_now_ns();

    if (recorder_is_on(type))
        append(line,
               snprintf(line, sizeof(line),
                        "{\"ph\":\"C\",\"cat\":\"%s.%s\",\"name\":\"%s\",\"pid\":%d,"
                        "\"tid\":0,\"ts\":" MICROSECONDS
                        ",\"args\":{\"value\":%llu}}\n",
                        self.opts.plugin, self.opts.types[type].type_name, name,
                        getpid(), AS_MICROSECONDS(now), (unsigned long long)value));
}

void recorder_flow(bool is_start, uint64_t id, uint64_t at_ns)
{
    char line[EVENT_BYTES];

    if (atomic_load_explicit(&self.on, memory_order_relaxed) == 0)
        return;
    append(line,
           snprintf(line, sizeof(line),
                    "{\"ph\":\"%s\",\"cat\":\"file\",\"name\":\"file\",\"id\":%llu,"
                    "\"pid\":%d,\"tid\":%d,\"ts\":" MICROSECONDS "%s}\n",
                    is_start ? "s" : "f", (unsigned long long)id, getpid(), thread_id(),
                    AS_MICROSECONDS(at_ns), is_start ? "" : ",\"bp\":\"e\""));
}

void recorder_name_thread(const char *name)
{
    int n;

    pthread_mutex_lock(&self.lock);
    n = snprintf(
        self.threads + self.threads_len, sizeof(self.threads) - self.threads_len,
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":"
        "{\"name\":\"%s\"}}\n",
        getpid(), thread_id(), name);
    if (n > 0 && self.threads_len + (size_t)n < sizeof(self.threads)) {
        self.threads_len += (size_t)n;
        self.n_threads++;
    }
    pthread_mutex_unlock(&self.lock);
}
