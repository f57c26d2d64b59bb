/* Calls that a program should not make, each refused with an error, and calls in callbacks. */
#include "mcp_sansio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
    ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(1)))

static uint64_t kept;
static int served, cancelled;

static void tool(void *context, mcp_server *server, const mcp_request *request)
{
    size_t size, taken;
    CHECK(context == &served);
    CHECK(mcp_text_equals(request->method, "tools/call") && mcp_text_equals(request->name, "t"));
    /* In a callback. */
    CHECK(mcp_server_space(server, &size) == NULL && size == 0);
    CHECK(mcp_server_transmit(server, &size) == NULL);
    CHECK(mcp_server_receive(server, (const uint8_t *)"{}\n", 3, &taken, 0) == MCP_ERROR_BUSY && taken == 0);
    CHECK(mcp_server_received(server, 1, 0) == MCP_ERROR_BUSY);
    CHECK(mcp_server_handle_timeout(server, 0) == MCP_ERROR_BUSY);
    CHECK(mcp_server_free(server) == MCP_ERROR_BUSY);
    /* Answers that cannot be sent: the request still waits. */
    CHECK(mcp_respond_text(server, request->id, NULL, 0) == MCP_ERROR_NULL);
    CHECK(mcp_respond_text(server, request->id, "\xff", 0) == MCP_ERROR_UTF8);
    CHECK(mcp_respond_json(server, request->id, "{", 0) == MCP_ERROR_JSON);
    CHECK(mcp_respond_json(server, request->id, "[]", 0) == MCP_ERROR_JSON);
    CHECK(mcp_respond_json(server, request->id, "\"{}\"", 0) == MCP_ERROR_JSON);
    CHECK(mcp_respond_text(server, request->id + 1, "x", 0) == MCP_ERROR_NOT_DUE);
    CHECK(mcp_respond_text(server, 0, "x", 0) == MCP_ERROR_NOT_DUE);
    CHECK(mcp_server_log(server, request->id, 8, NULL, "x", 0) == MCP_ERROR_TYPE);
    kept = request->id;
    served++;
}

static void on_server_event(void *context, mcp_server *server, const mcp_event *event)
{
    (void)context, (void)server;
    if (event->kind == MCP_EVENT_KIND_CANCELLED && event->id == kept)
        cancelled++;
}

/* What a client received. */
struct received {
    uint64_t failed[3], deadlines[3], next_call, input;
    int failures;
    mcp_error error;
};

static void on_client_event(void *context, mcp_client *client, const mcp_event *event)
{
    struct received *received = (struct received *)context;
    if (event->kind == MCP_EVENT_KIND_INPUT)
        received->input = event->id;
    if (event->kind != MCP_EVENT_KIND_FAILED)
        return;
    CHECK(received->failures < 3);
    if (event->error == MCP_ERROR_TIMED_OUT && received->next_call == 0)
        CHECK(mcp_client_call_tool(client, "t", NULL, 5000, false, &received->next_call, event->now) == MCP_ERROR_NONE);
    received->error = event->error;
    received->deadlines[received->failures] = mcp_client_deadline(client);
    received->failed[received->failures++] = event->id;
}

static void receive(mcp_server *server, const char *line)
{
    size_t taken;
    CHECK(mcp_server_receive(server, (const uint8_t *)line, strlen(line), &taken, 0) == MCP_ERROR_NONE);
    CHECK(taken == strlen(line));
}

static void send_all(mcp_server *server, const char *expected)
{
    size_t length;
    const uint8_t *output = mcp_server_transmit(server, &length);
    static char text[4096];
    CHECK(output != NULL && length < sizeof text);
    memcpy(text, output, length);
    text[length] = 0;
    CHECK(strstr(text, expected) != NULL);
    CHECK(mcp_server_sent(server, length + 1, 0) == MCP_ERROR_SPACE);
    CHECK(mcp_server_sent(server, length, 0) == MCP_ERROR_NONE);
    CHECK(mcp_server_transmit(server, &length) == NULL && length == 0);
}

static void client_receive(mcp_client *client, const char *line)
{
    size_t taken;
    CHECK(mcp_client_receive(client, (const uint8_t *)line, strlen(line), &taken, 0) == MCP_ERROR_NONE);
    CHECK(taken == strlen(line));
}

static void client_send_all(mcp_client *client, const char *expected)
{
    size_t length;
    const uint8_t *output = mcp_client_transmit(client, &length);
    static char text[4096];
    CHECK(output != NULL && length < sizeof text);
    memcpy(text, output, length);
    text[length] = 0;
    CHECK(strstr(text, expected) != NULL);
    CHECK(mcp_client_sent(client, length, 0) == MCP_ERROR_NONE);
}

/* Opens a connection: the next call has the id 2 if it is modern, and 3 otherwise. */
static mcp_client *open_client(bool is_modern, struct received *received)
{
    mcp_client *client;
    memset(received, 0, sizeof *received);
    CHECK(mcp_client_new("c", "1", "{\"roots\":{}}", on_client_event, received, 1, &client, 0) == MCP_ERROR_NONE);
    client_send_all(client, "server/discover");
    if (is_modern) {
        client_receive(client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\","
                               "\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},"
                               "\"ttlMs\":0,\"cacheScope\":\"private\"}}\n");
        return client;
    }
    client_receive(client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"unknown\"}}\n");
    client_send_all(client, "initialize");
    client_receive(client, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"protocolVersion\":\"2025-11-25\","
                           "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}\n");
    client_send_all(client, "notifications/initialized");
    return client;
}

static void null_pointers(void)
{
    size_t size;
    uint64_t call;
    mcp_catalog *catalog;
    mcp_text empty = mcp_text_of(NULL);
    CHECK(mcp_catalog_new(NULL, "1", &catalog) == MCP_ERROR_NULL);
    CHECK(mcp_catalog_new("n", "1", NULL) == MCP_ERROR_NULL);
    CHECK(mcp_catalog_add_tool(NULL, "t", NULL, NULL, tool, NULL) == MCP_ERROR_NULL);
    CHECK(mcp_catalog_logging(NULL) == MCP_ERROR_NULL);
    CHECK(mcp_server_new(NULL, 0, NULL) == MCP_ERROR_NULL);
    CHECK(mcp_server_space(NULL, &size) == NULL && size == 0);
    CHECK(mcp_server_transmit(NULL, NULL) == NULL);
    CHECK(mcp_server_received(NULL, 1, 0) == MCP_ERROR_NULL);
    CHECK(mcp_server_sent(NULL, 0, 0) == MCP_ERROR_NULL);
    CHECK(mcp_server_end_of_input(NULL, 0) == MCP_ERROR_NULL);
    CHECK(mcp_server_deadline(NULL) == UINT64_MAX);
    CHECK(mcp_server_is_over(NULL));
    CHECK(mcp_server_progress(NULL, 1, 0, 0, NULL, 0) == MCP_ERROR_NULL);
    CHECK(mcp_server_resource_updated(NULL, "a:b", 0) == MCP_ERROR_NULL);
    CHECK(mcp_respond_error(NULL, 1, 0, "x", 0) == MCP_ERROR_NULL);
    CHECK(mcp_client_call(NULL, "tools/list", NULL, 0, false, &call, 0) == MCP_ERROR_NULL);
    CHECK(mcp_client_cancel(NULL, 1, NULL, 0) == MCP_ERROR_NULL);
    CHECK(mcp_client_is_over(NULL));
    CHECK(mcp_json_quote(NULL, NULL, 0, NULL) == MCP_ERROR_NULL);
    CHECK(mcp_json_member(empty, "x", NULL) == MCP_ERROR_JSON);
    CHECK(strcmp(mcp_error_text(MCP_ERROR_NULL), mcp_error_text(-1)) != 0);
    mcp_catalog_free(NULL);
    mcp_server_free(NULL);
    mcp_client_free(NULL);
}

static void json(void)
{
    mcp_text object = mcp_text_of("{\"s\":\"a\\u00e9\\n\",\"i\":3.0,\"f\":1.5,\"b\":true,\"n\":null,\"z\":\"\\u0000\",\"o\":{\"x\":[1]}}");
    mcp_text inner;
    char text[16];
    size_t length;
    int64_t integer;
    double number;
    bool boolean;
    CHECK(mcp_json_string(object, "s", text, sizeof text, &length) == MCP_ERROR_NONE);
    CHECK(length == 4 && strcmp(text, "a\xc3\xa9\n") == 0);
    CHECK(mcp_json_string(object, "s", text, 4, &length) == MCP_ERROR_SPACE && length == 4);
    CHECK(mcp_json_string(object, "z", text, sizeof text, NULL) == MCP_ERROR_TYPE);
    CHECK(mcp_json_string(object, "i", text, sizeof text, NULL) == MCP_ERROR_TYPE);
    CHECK(mcp_json_integer(object, "i", &integer) == MCP_ERROR_NONE && integer == 3);
    CHECK(mcp_json_integer(object, "f", &integer) == MCP_ERROR_TYPE);
    CHECK(mcp_json_number(object, "f", &number) == MCP_ERROR_NONE && number == 1.5);
    CHECK(mcp_json_boolean(object, "b", &boolean) == MCP_ERROR_NONE && boolean);
    CHECK(mcp_json_boolean(object, "n", &boolean) == MCP_ERROR_MISSING);
    CHECK(mcp_json_boolean(object, "none", &boolean) == MCP_ERROR_MISSING);
    CHECK(mcp_json_member(object, "o", &inner) == MCP_ERROR_NONE && mcp_text_equals(inner, "{\"x\":[1]}"));
    CHECK(mcp_json_member(inner, "x", &inner) == MCP_ERROR_NONE && mcp_text_equals(inner, "[1]"));
    CHECK(mcp_json_member(inner, "x", &inner) == MCP_ERROR_JSON);
    CHECK(mcp_json_quote("a\"\n", text, sizeof text, &length) == MCP_ERROR_NONE);
    CHECK(strcmp(text, "\"a\\\"\\n\"") == 0 && length == strlen(text));
}

static void catalog_and_server(void)
{
    mcp_catalog *catalog;
    mcp_server *server;
    size_t taken, size;
    CHECK(mcp_catalog_new("n", "1", &catalog) == MCP_ERROR_NONE);
    CHECK(mcp_catalog_on_event(catalog, on_server_event, NULL) == MCP_ERROR_NONE);
    CHECK(mcp_catalog_add_tool(catalog, "t", NULL, NULL, NULL, NULL) == MCP_ERROR_NULL);
    CHECK(mcp_catalog_add_tool(catalog, "t", NULL, "[]", tool, NULL) == MCP_ERROR_NAME);
    CHECK(mcp_catalog_add_tool(catalog, "t", NULL, "{", tool, NULL) == MCP_ERROR_JSON);
    CHECK(mcp_catalog_add_tool(catalog, "a b", NULL, NULL, tool, NULL) == MCP_ERROR_NAME);
    CHECK(mcp_catalog_add_tool(catalog, "t", "d", NULL, tool, &served) == MCP_ERROR_NONE);
    CHECK(mcp_catalog_add_tool(catalog, "t", "d", NULL, tool, &served) == MCP_ERROR_NAME);
    CHECK(mcp_catalog_add_resource(catalog, "no uri", "r", NULL, NULL, tool, NULL) == MCP_ERROR_NAME);
    CHECK(mcp_catalog_add_prompt(catalog, "p", NULL, "{}", tool, NULL) == MCP_ERROR_JSON);
    CHECK(mcp_server_new(catalog, 1, &server) == MCP_ERROR_NONE);
    mcp_catalog_free(catalog);
    CHECK(mcp_server_received(server, 1u << 30, 0) == MCP_ERROR_SPACE);
    CHECK(mcp_server_receive(server, NULL, 1, &taken, 0) == MCP_ERROR_NULL && taken == 0);
    receive(server, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\","
                    "\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n"
                    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    send_all(server, "2025-11-25");
    receive(server, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}}\n");
    CHECK(served == 1);
    CHECK(mcp_respond_text(server, kept, "late", 0) == MCP_ERROR_NONE);
    CHECK(mcp_respond_text(server, kept, "twice", 0) == MCP_ERROR_NOT_DUE);
    CHECK(mcp_server_progress(server, kept, 1, -1, NULL, 0) == MCP_ERROR_NOT_DUE);
    send_all(server, "late");
    /* Cancelled: no answer is due. */
    receive(server, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}}\n");
    receive(server, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2}}\n");
    CHECK(served == 2 && cancelled == 1);
    CHECK(mcp_respond_text(server, kept, "never", 0) == MCP_ERROR_NOT_DUE);
    /* Output that is still queued when the time to linger is over is not lost. */
    receive(server, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}}\n");
    CHECK(mcp_server_end_of_input(server, 0) == MCP_ERROR_NONE && !mcp_server_is_over(server));
    CHECK(mcp_respond_text(server, kept, "last", 0) == MCP_ERROR_NONE);
    CHECK(mcp_server_handle_timeout(server, 1500) == MCP_ERROR_NONE && !mcp_server_is_over(server));
    send_all(server, "last");
    CHECK(mcp_server_is_over(server) && mcp_server_space(server, &size) == NULL && size == 0);
    CHECK(mcp_server_received(server, 1, 0) == MCP_ERROR_STATE);
    CHECK(mcp_server_free(server) == MCP_ERROR_NONE);
}

static void client_calls(void)
{
    mcp_client *client;
    uint64_t call;
    size_t length;
    CHECK(mcp_client_new("c", "1", "[", on_client_event, NULL, 1, &client, 0) == MCP_ERROR_JSON);
    CHECK(mcp_client_new("c", "1", "[]", on_client_event, NULL, 1, &client, 0) == MCP_ERROR_JSON);
    CHECK(mcp_client_new("c", "1", "{\"roots\":{}}", NULL, NULL, 1, &client, 0) == MCP_ERROR_NONE);
    CHECK(mcp_client_transmit(client, &length) != NULL && length > 0);
    CHECK(mcp_client_call(client, "tools/list", NULL, 0, false, &call, 0) == MCP_ERROR_STATE);
    CHECK(mcp_client_call(client, "no/such", NULL, 0, false, &call, 0) == MCP_ERROR_NAME);
    CHECK(mcp_client_call_tool(client, "t", "{", 0, false, &call, 0) == MCP_ERROR_JSON);
    CHECK(mcp_client_cancel(client, 7, NULL, 0) == MCP_ERROR_NONE);
    CHECK(mcp_client_answer(client, 7, "{}", 0) == MCP_ERROR_NOT_DUE);
    CHECK(mcp_client_close(client, 0) == MCP_ERROR_NONE);
    CHECK(mcp_client_call(client, "tools/list", NULL, 0, false, &call, 0) == MCP_ERROR_CLOSED);
    CHECK(mcp_client_free(client) == MCP_ERROR_NONE);
}

/* JSON of another kind than an object is neither sent, nor does it answer anything. */
static void client_json(bool is_modern)
{
    struct received received;
    mcp_client *client = open_client(is_modern, &received);
    uint64_t call;
    size_t length;
    CHECK(mcp_client_call_tool(client, "t", "[1]", 0, false, &call, 0) == MCP_ERROR_JSON);
    CHECK(mcp_client_call(client, "tools/list", "[1]", 0, false, &call, 0) == MCP_ERROR_JSON);
    CHECK(mcp_client_transmit(client, &length) == NULL);
    CHECK(mcp_client_call_tool(client, "t", " {\"a\":1}", 0, false, &call, 0) == MCP_ERROR_NONE);
    client_send_all(client, "{\"a\":1}");
    if (is_modern)
        client_receive(client, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"input_required\","
                               "\"inputRequests\":{\"q\":{\"method\":\"roots/list\"}}}}\n");
    else
        client_receive(client, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"roots/list\"}\n");
    CHECK(received.input != 0);
    CHECK(mcp_client_answer(client, received.input, "\"yes\"", 0) == MCP_ERROR_JSON);
    CHECK(mcp_client_transmit(client, &length) == NULL);
    CHECK(mcp_client_answer(client, received.input, "{\"roots\":[]}", 0) == MCP_ERROR_NONE);
    client_send_all(client, "{\"roots\":[]}");
    CHECK(mcp_client_answer(client, received.input, "{\"roots\":[]}", 0) == MCP_ERROR_NOT_DUE);
    CHECK(mcp_client_free(client) == MCP_ERROR_NONE);
}

/* Refusing an input ends the call at once, without another call of the library. */
static void client_refusal(void)
{
    struct received received;
    mcp_client *client = open_client(true, &received);
    uint64_t call;
    CHECK(mcp_client_call_tool(client, "t", NULL, 0, false, &call, 0) == MCP_ERROR_NONE);
    client_send_all(client, "tools/call");
    client_receive(client, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"input_required\","
                           "\"inputRequests\":{\"q\":{\"method\":\"roots/list\"}}}}\n");
    CHECK(received.failures == 0);
    CHECK(mcp_client_refuse(client, received.input, -32603, "no", 0) == MCP_ERROR_NONE);
    CHECK(received.failures == 1 && received.failed[0] == call);
    CHECK(mcp_client_free(client) == MCP_ERROR_NONE);
}

/* Two calls time out together, and the callback of the first starts another. */
static void client_callbacks(void)
{
    struct received received;
    mcp_client *client = open_client(true, &received);
    uint64_t first, second;
    CHECK(mcp_client_call_tool(client, "t", NULL, 1000, false, &first, 0) == MCP_ERROR_NONE);
    CHECK(mcp_client_call_tool(client, "t", NULL, 1000, false, &second, 0) == MCP_ERROR_NONE);
    CHECK(first != 0 && second != 0 && first != second && mcp_client_deadline(client) == 1000);
    CHECK(mcp_client_handle_timeout(client, 1000) == MCP_ERROR_NONE);
    CHECK(received.failures == 2 && received.error == MCP_ERROR_TIMED_OUT);
    CHECK((received.failed[0] == first && received.failed[1] == second) ||
          (received.failed[0] == second && received.failed[1] == first));
    CHECK(received.next_call != 0 && received.next_call != first && received.next_call != second);
    CHECK(received.deadlines[0] == 6000 && received.deadlines[1] == 6000);
    CHECK(mcp_client_deadline(client) == 6000);
    /* The numbers of the ended calls identify nothing any more. */
    CHECK(mcp_client_cancel(client, first, NULL, 1000) == MCP_ERROR_NONE);
    CHECK(mcp_client_cancel(client, second, NULL, 1000) == MCP_ERROR_NONE);
    CHECK(received.failures == 2);
    /* How long a connection lingers is not known yet when its last callbacks run. */
    CHECK(mcp_client_end_of_input(client, 1000) == MCP_ERROR_NONE);
    CHECK(received.failures == 3 && received.error == MCP_ERROR_CLOSED);
    CHECK(received.failed[2] == received.next_call && received.deadlines[2] == 0);
    CHECK(mcp_client_free(client) == MCP_ERROR_NONE);
}

int main(void)
{
    null_pointers();
    json();
    catalog_and_server();
    client_calls();
    client_json(false);
    client_json(true);
    client_refusal();
    client_callbacks();
    puts("refused");
    return 0;
}
