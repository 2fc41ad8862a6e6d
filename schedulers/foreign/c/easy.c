/* EASY backfilling for Pipistrelle, in C, with libzmq and jansson.
 *
 *     pipistrelle run --scheduler schedulers/foreign/c
 *
 * The first in the queue that does not fit gets a reservation: the time at which, by the walltimes of the running jobs,
 * enough units will be free for it (the shadow), and what is left over then (the extra units). A job behind it may
 * start if it ends by the shadow, or needs no more than the extra units. Every job gets the lowest free units.
 *
 * See docs/how-to/foreign-schedulers.md and protocol/SPEC.md. */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

/* Longest silence of the server; ZeroMQ itself would wait for ever for a server that is gone. */
enum { SILENCE_MS = 600 * 1000 };

typedef struct {
    char *id;
    long number;     /* in the order of submission; settles ties */
    long res;        /* number of units */
    double submit;   /* s */
    double occupies; /* longest time (s) that it holds its units, with prologue and epilogue; INFINITY if unknown */
    double end;      /* latest end (s) of a running job */
} Job;

typedef struct {
    Job **jobs;
    size_t count, room;
} List;

static char *busy; /* of each unit, whether a job holds it */
static long units, free_units, submitted;
static double beside; /* s, the longest prologue and epilogue */
static List waiting;  /* by submit time */
static List running;  /* by end */

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("easy-c: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void *need(void *memory) {
    if (memory == NULL) fail("out of memory");
    return memory;
}

/* -- lists of jobs: sorted, most join near the end ----------------------------------------------------------------- */

static int by_submit(const Job *one, const Job *other) {
    return one->submit != other->submit ? one->submit < other->submit : one->number < other->number;
}

static int by_end(const Job *one, const Job *other) {
    return one->end != other->end ? one->end < other->end : one->number < other->number;
}

static void insert(List *list, Job *job, int (*before)(const Job *, const Job *)) {
    if (list->count == list->room) {
        list->room = 2 * list->room + 64;
        list->jobs = need(realloc(list->jobs, list->room * sizeof *list->jobs));
    }
    size_t place = list->count++;
    for (; place > 0 && before(job, list->jobs[place - 1]); place--) list->jobs[place] = list->jobs[place - 1];
    list->jobs[place] = job;
}

static Job *take(List *list, size_t place) {
    Job *job = list->jobs[place];
    list->count--;
    memmove(list->jobs + place, list->jobs + place + 1, (list->count - place) * sizeof *list->jobs);
    return job;
}

/* -- sets of units ------------------------------------------------------------------------------------------------- */

/* Takes the lowest free units and returns them as text, such as "0-3 8"; there are enough. */
static char *take_lowest(long count) {
    size_t length = 0, room = 64;
    char *text = need(malloc(room));
    free_units -= count;
    for (long unit = 0; count > 0; unit++) {
        if (busy[unit]) continue;
        long first = unit;
        while (count > 0 && unit < units && !busy[unit]) {
            busy[unit++] = 1;
            count--;
        }
        if (room - length < 48) text = need(realloc(text, room *= 2));
        length += sprintf(text + length, unit - 1 > first ? "%s%ld-%ld" : "%s%ld", length ? " " : "", first, unit - 1);
    }
    return text;
}

static void give_back(const char *text) {
    while (*text != '\0') {
        char *rest;
        long first = strtol(text, &rest, 10), last = first;
        if (rest == text) fail("this is no set of units: %s", text);
        if (*rest == '-') last = strtol(rest + 1, &rest, 10);
        if (first < 0 || last >= units) fail("the machine has no units %ld to %ld", first, last);
        for (long unit = first; unit <= last; unit++) busy[unit] = 0;
        free_units += last - first + 1;
        text = rest + (*rest == ' ');
    }
}

/* -- what happened ------------------------------------------------------------------------------------------------- */

static double number(const json_t *object, const char *key, double otherwise) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static const char *string(const json_t *object, const char *key) {
    const char *value = json_string_value(json_object_get(object, key));
    return value == NULL ? "" : value;
}

static void decide(json_t *decisions, json_t *now, const char *type, json_t *data) {
    json_array_append_new(decisions, json_pack("{s:O, s:s, s:o}", "timestamp", now, "type", type, "data", data));
}

static void reject(json_t *decisions, json_t *now, const char *id, const char *why) {
    json_t *data = json_pack("{s:s, s:s}", "job_id", id, "why", why);
    decide(decisions, now, "REJECT_JOB", data);
}

static void begin(const json_t *data) {
    double prologue = 0, epilogue = 0;
    json_t *pool;
    size_t index;
    json_array_foreach(json_object_get(json_object_get(data, "platform"), "pools"), index, pool) {
        prologue = fmax(prologue, number(pool, "prologue", 0));
        epilogue = fmax(epilogue, number(pool, "epilogue", 0));
    }
    beside = prologue + epilogue;
    units = free_units = (long)number(data, "nb_resources", 0);
    busy = need(calloc((size_t)units, 1));
}

static void submit(const json_t *event, json_t *now, json_t *decisions) {
    const json_t *asked = json_object_get(json_object_get(event, "data"), "job");
    const char *id = string(asked, "id");
    long res = (long)number(asked, "res", 0);
    long order = submitted++;
    if (res > units) {
        char why[96];
        sprintf(why, "needs %ld units, the machine has %ld", res, units);
        reject(decisions, now, id, why);
    } else if (json_is_string(json_object_get(asked, "constraint")) || number(asked, "units_per_node", 0) > 0) {
        reject(decisions, now, id, "asks for nodes of some kind, which this scheduler does not tell apart");
    } else {
        Job *job = need(malloc(sizeof *job));
        double since = number(asked, "subtime", number(event, "timestamp", 0));
        *job = (Job){need(strdup(id)), order, res, since, number(asked, "walltime", INFINITY) + beside, 0};
        insert(&waiting, job, by_submit);
    }
}

static void complete(const json_t *data) {
    const char *id = string(data, "job_id");
    for (size_t place = 0; place < running.count; place++) {
        if (strcmp(running.jobs[place]->id, id) == 0) {
            Job *job = take(&running, place);
            give_back(string(data, "alloc"));
            free(job->id);
            free(job);
            return;
        }
    }
    fail("a job has ended that did not run: %s", id);
}

/* -- EASY ---------------------------------------------------------------------------------------------------------- */

static void start(size_t place, json_t *now, const char *why, json_t *decisions) {
    Job *job = take(&waiting, place);
    char *alloc = take_lowest(job->res);
    json_t *data = json_pack("{s:s, s:s}", "job_id", job->id, "alloc", alloc);
    if (why != NULL) json_object_set_new(data, "why", json_string(why));
    decide(decisions, now, "EXECUTE_JOB", data);
    free(alloc);
    job->end = json_number_value(now) + job->occupies;
    insert(&running, job, by_end);
}

/* Lets jobs pass the first in the queue, which does not fit. */
static void backfill(json_t *moment, json_t *decisions) {
    Job *first = waiting.jobs[0];
    double now = json_number_value(moment), shadow = INFINITY;
    long then_free = free_units;
    for (size_t place = 0; place < running.count && running.jobs[place]->end <= shadow; place++) {
        then_free += running.jobs[place]->res;
        if (then_free >= first->res) shadow = running.jobs[place]->end; /* all that end by then count */
    }
    long extra = then_free > first->res ? then_free - first->res : 0;
    char *why = need(malloc(strlen(first->id) + 32));
    sprintf(why, "backfilled before %s", first->id);
    for (size_t place = 1; place < waiting.count && free_units > 0;) {
        Job *job = waiting.jobs[place];
        int in_time = now + job->occupies <= shadow;
        if (job->res > free_units || !(in_time || job->res <= extra)) {
            place++;
            continue;
        }
        if (!in_time) extra -= job->res;
        start(place, moment, why, decisions); /* the next one has this place now */
    }
    free(why);
}

/* Returns the events that can start a job; NULL if a queued job has few enough units to start at any event. */
static json_t *wake_when(void) {
    json_t *ends = json_array();
    long least = -1;
    for (size_t place = 0; place < waiting.count; place++) {
        if (least < 0 || waiting.jobs[place]->res < least) least = waiting.jobs[place]->res;
    }
    if (least >= 0) json_array_append_new(ends, json_pack("{s:I}", "free", (json_int_t)least));
    if (least < 0 || least > free_units)
        return json_pack("{s:[{s:i}], s:o}", "JOB_SUBMITTED", "spare", 0, "JOB_COMPLETED", ends);
    json_decref(ends);
    return NULL;
}

/* Returns the reply to a notice; NULL if the simulation has ended. */
static json_t *answer(const json_t *notice) {
    json_t *now = json_object_get(notice, "now"), *decisions = json_array(), *event;
    size_t index;
    json_array_foreach(json_object_get(notice, "events"), index, event) {
        const char *type = string(event, "type");
        const json_t *data = json_object_get(event, "data");
        if (strcmp(type, "SIMULATION_BEGINS") == 0) begin(data);
        else if (strcmp(type, "JOB_SUBMITTED") == 0) submit(event, now, decisions);
        else if (strcmp(type, "JOB_COMPLETED") == 0) complete(data);
        else if (strcmp(type, "DECISION_REJECTED") == 0) fail("%s", string(data, "message"));
        else if (strcmp(type, "SIMULATION_ENDS") == 0) return NULL;
    }
    while (waiting.count > 0 && waiting.jobs[0]->res <= free_units) start(0, now, NULL, decisions);
    if (waiting.count > 0 && free_units > 0) backfill(now, decisions);
    json_t *seq = json_object_get(notice, "seq");
    json_t *reply = json_pack("{s:O, s:O, s:o}", "reply_to", seq, "now", now, "events", decisions);
    json_t *when = wake_when();
    if (when != NULL) json_object_set_new(reply, "wake_when", when);
    return reply;
}

/* -- the conversation ---------------------------------------------------------------------------------------------- */

/* Sends a message, which this frees, and returns the answer. */
static json_t *ask(void *socket, json_t *message) {
    char *text = need(json_dumps(message, JSON_COMPACT));
    json_decref(message);
    if (zmq_send(socket, text, strlen(text), 0) < 0) fail("cannot send: %s", zmq_strerror(zmq_errno()));
    free(text);
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    if (zmq_msg_recv(&frame, socket, 0) < 0) fail("the server does not answer: %s", zmq_strerror(zmq_errno()));
    json_error_t error;
    json_t *received = json_loadb(zmq_msg_data(&frame), zmq_msg_size(&frame), 0, &error);
    if (received == NULL) fail("the server sent no JSON: %s", error.text);
    zmq_msg_close(&frame);
    if (strcmp(string(received, "type"), "REFUSED") == 0)
        fail("the server refused: %s", string(json_object_get(received, "data"), "message"));
    return received;
}

int main(int count, char **arguments) {
    const char *endpoint = count > 1 ? arguments[1] : getenv("PIPISTRELLE_ENDPOINT");
    if (endpoint == NULL) fail("usage: easy ENDPOINT");
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_REQ);
    int silence = SILENCE_MS;
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &silence, sizeof silence);
    if (zmq_connect(socket, endpoint) < 0) fail("%s: %s", endpoint, zmq_strerror(zmq_errno()));
    json_t *about = json_pack("{s:s, s:[s]}", "name", "easy-c", "features", "wake_when");
    json_decref(ask(socket, json_pack("{s:s, s:o}", "type", "HELLO", "data", about)));
    json_t *reply = json_pack("{s:i, s:f, s:[]}", "reply_to", 0, "now", 0.0, "events");
    while (reply != NULL) {
        json_t *notice = ask(socket, reply);
        reply = answer(notice);
        json_decref(notice);
    }
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
