/* What the example servers offer: a thermometer with a lamp. */
#include "thermometer.h"

#include <stdio.h>

#define STEP_MS 100
#define MEASURE_MS 1000

static int millicelsius(const struct thermometer *self)
{
    return 21000 + 100 * (int)(self->measured % 10);
}

static void respond_celsius(const struct thermometer *self, mcp_server *server, uint64_t request, uint64_t now)
{
    char text[32];
    int tenths = millicelsius(self) / 100;
    snprintf(text, sizeof text, "%d.%d \xc2\xb0" "C", tenths / 10, tenths % 10);
    mcp_respond_text(server, request, text, now);
}

static void read_sensor(void *context, mcp_server *server, const mcp_request *request)
{
    char text[64];
    snprintf(text, sizeof text, "{\"adc\":512,\"millicelsius\":%d}", millicelsius(context));
    mcp_respond_text(server, request->id, text, request->now);
}

static void switch_lamp(void *context, mcp_server *server, const mcp_request *request)
{
    struct thermometer *self = context;
    bool on;
    if (mcp_json_boolean(request->arguments, "on", &on) != MCP_ERROR_NONE) {
        mcp_respond_tool_error(server, request->id, "`on` must be true or false", request->now);
        return;
    }
    self->lamp = on;
    mcp_respond_text(server, request->id, on ? "The lamp is on." : "The lamp is off.", request->now);
}

/* Runs for a while: the answer comes from `thermometer_advance`. */
static void average(void *context, mcp_server *server, const mcp_request *request)
{
    struct thermometer *self = context;
    int64_t samples = 0;
    size_t i;
    mcp_error error = mcp_json_integer(request->arguments, "samples", &samples);
    if (error != MCP_ERROR_NONE || samples < 1 || samples > 100) {
        mcp_respond_tool_error(server, request->id, "`samples` must be from 1 to 100", request->now);
        return;
    }
    for (i = 0; i < sizeof self->running / sizeof *self->running; i++) {
        if (!self->running[i].server) {
            struct average started = {server, request->id, request->now + STEP_MS, 0, 0};
            started.samples = (int)samples;
            self->running[i] = started;
            return;
        }
    }
    mcp_respond_tool_error(server, request->id, "too many measurements", request->now);
}

static void temperature(void *context, mcp_server *server, const mcp_request *request)
{
    respond_celsius(context, server, request->id, request->now);
}

static void memory(void *context, mcp_server *server, const mcp_request *request)
{
    struct thermometer *self = context;
    char text[96];
    unsigned long heap = self->heap_peak ? (unsigned long)self->heap_peak() : 0;
    unsigned long stack = self->stack_peak ? (unsigned long)self->stack_peak() : 0;
    snprintf(text, sizeof text, "{\"heap\":{\"peak\":%lu},\"stack\":{\"peak\":%lu}}", heap, stack);
    mcp_respond_text(server, request->id, text, request->now);
}

static void report(void *context, mcp_server *server, const mcp_request *request)
{
    char room[64], text[128];
    (void)context;
    if (mcp_json_string(request->arguments, "room", room, sizeof room, NULL) != MCP_ERROR_NONE) {
        mcp_respond_error(server, request->id, -32602, "`room` must be a short text", request->now);
        return;
    }
    snprintf(text, sizeof text, "Report the temperature of %s.", room);
    mcp_respond_text(server, request->id, text, request->now);
}

static void on_event(void *context, mcp_server *server, const mcp_event *event)
{
    struct thermometer *self = context;
    size_t i;
    for (i = 0; i < sizeof self->running / sizeof *self->running; i++) {
        struct average *one = &self->running[i];
        if (event->kind == MCP_EVENT_KIND_CANCELLED && one->server == server && one->request == event->id)
            one->server = NULL;
    }
}

uint64_t thermometer_advance(struct thermometer *self, uint64_t now)
{
    uint64_t next;
    size_t i;
    self->changed = now >= self->next_measurement;
    if (self->changed) {
        self->measured++;
        self->next_measurement = now + MEASURE_MS;
    }
    next = self->next_measurement;
    for (i = 0; i < sizeof self->running / sizeof *self->running; i++) {
        struct average *one = &self->running[i];
        while (one->server && one->due <= now) {
            one->due += STEP_MS;
            mcp_server_progress(one->server, one->request, ++one->taken, one->samples, NULL, now);
            if (one->taken == one->samples) {
                respond_celsius(self, one->server, one->request, now);
                one->server = NULL;
            }
        }
        if (one->server && one->due < next)
            next = one->due;
    }
    return next;
}

void thermometer_forget(struct thermometer *self, const mcp_server *server)
{
    size_t i;
    for (i = 0; i < sizeof self->running / sizeof *self->running; i++)
        if (self->running[i].server == server)
            self->running[i].server = NULL;
}

mcp_error thermometer_catalog(struct thermometer *self, mcp_catalog **catalog)
{
    mcp_error e = mcp_catalog_new("thermometer", "1.0.0", catalog);
    mcp_catalog *c = e == MCP_ERROR_NONE ? *catalog : NULL;
    if (!e) e = mcp_catalog_on_event(c, on_event, self);
    if (!e) e = mcp_catalog_subscriptions(c);
    if (!e) e = mcp_catalog_add_tool(c, "read_sensor", "Reads the sensor", NULL, read_sensor, self);
    if (!e) e = mcp_catalog_add_tool(c, "switch_lamp", "Switches the lamp",
        "{\"type\":\"object\",\"properties\":{\"on\":{\"type\":\"boolean\"}},\"required\":[\"on\"]}",
        switch_lamp, self);
    if (!e) e = mcp_catalog_add_tool(c, "average", "Measures ten times a second and says the mean",
        "{\"type\":\"object\",\"properties\":{\"samples\":{\"type\":\"integer\",\"minimum\":1,"
        "\"maximum\":100}},\"required\":[\"samples\"]}", average, self);
    if (!e) e = mcp_catalog_add_resource(c, THERMOMETER_TEMPERATURE, "temperature", NULL, "text/plain",
        temperature, self);
    if (!e) e = mcp_catalog_add_resource(c, "device://memory", "memory", "Peak use of memory",
        "application/json", memory, self);
    if (!e) e = mcp_catalog_add_prompt(c, "report", NULL, "[{\"name\":\"room\",\"required\":true}]",
        report, self);
    return e;
}
