/* MCP servers and clients in C. Generated from adapters/c/src by .ci/c: do not edit.
 *
 * What holds for all functions:
 *
 * Objects   `mcp_catalog`, `mcp_server` and `mcp_client` are opaque. Who makes one frees it, once. Null
 *           pointers give MCP_ERROR_NULL; other invalid pointers are undefined behaviour.
 * Texts     An argument of type `const char *` is UTF-8, ends with a zero, and is copied: it may be
 *           freed after the call. An `mcp_text` does not end with a zero, and belongs to the library.
 * Results   A function that fails changes nothing, unless its description says so. Places for results
 *           are written on success only, except where stated.
 * Time      `now` is in milliseconds of any monotonic clock, the same for all calls of an object. The
 *           library reads no clock, does no I/O, blocks on nothing and starts no threads.
 * Threads   One object is used by one thread at a time. Different objects are independent.
 * Callbacks run inside the functions that take input or time. They must return: no longjmp, and no
 *           C++ exception may leave them.
 * Panics    A bug of the library or the lack of memory ends the program (`abort`); on bare metal the
 *           function of `mcp_start` is called. Nothing that a peer sends does that, within the limits.
 *           Nothing unwinds into C.
 * Globals   There are none, except the allocator on bare metal (define MCP_BARE_METAL for it).
 */


#ifndef MCP_SANSIO_H
#define MCP_SANSIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Why a function failed. `mcp_error_text` describes each.
typedef enum mcp_error {
  // Success.
  MCP_ERROR_NONE = 0,
  // A pointer that is required is null.
  MCP_ERROR_NULL = 1,
  // A text is not UTF-8.
  MCP_ERROR_UTF8 = 2,
  // A text is not JSON, or not of the kind that is required, such as an object.
  MCP_ERROR_JSON = 3,
  // The object has no such member, or the member is null.
  MCP_ERROR_MISSING = 4,
  // The member has another type, or a number does not fit.
  MCP_ERROR_TYPE = 5,
  // The buffer is too small. The length that is needed was stored.
  MCP_ERROR_SPACE = 6,
  // The function was called in a callback that does not allow it.
  MCP_ERROR_BUSY = 7,
  // The connection or the library is not in a state that allows this call.
  MCP_ERROR_STATE = 8,
  // No answer is due: the request was answered or cancelled, or the handle is unknown.
  MCP_ERROR_NOT_DUE = 9,
  // A name, a URI or a schema is invalid or already in use.
  MCP_ERROR_NAME = 10,
  // The other side did not declare the capability, or the revision does not have the method.
  MCP_ERROR_FORBIDDEN = 11,
  // A limit was reached.
  MCP_ERROR_LIMIT = 12,
  // The connection is closed.
  MCP_ERROR_CLOSED = 13,
  // The other side answered with an error. Its code and message are in the event.
  MCP_ERROR_REFUSED = 14,
  // The answer did not arrive in time.
  MCP_ERROR_TIMED_OUT = 15,
  // This side cancelled the call.
  MCP_ERROR_CANCELLED = 16,
  // The answer of the other side is not valid.
  MCP_ERROR_INVALID = 17,
} mcp_error;

// The kind of an event.
typedef enum mcp_event_kind {
  // The connection is open. `text` is the revision.
  MCP_EVENT_KIND_OPENED = 0,
  // The other side cancelled request or input request `id`. No answer is due.
  MCP_EVENT_KIND_CANCELLED = 1,
  // The other side broke a rule of the protocol, for logs. `text` says which.
  MCP_EVENT_KIND_VIOLATION = 2,
  // The connection is closed. `text` says why.
  MCP_EVENT_KIND_CLOSED = 3,
  // A notification of method `name` with the parameters `text`, an object.
  MCP_EVENT_KIND_NOTIFICATION = 4,
  // To a client: progress of call `id`. `text` is a message for people, or empty.
  MCP_EVENT_KIND_PROGRESS = 5,
  // To a client: call `id` ended with the result `text`, an object.
  MCP_EVENT_KIND_RESULT = 6,
  // To a client: call `id` ended without a result. `error` and `text` say why.
  MCP_EVENT_KIND_FAILED = 7,
  // To a client: input request `id` of method `name` with the parameters `text`, to answer with
  // `mcp_client_answer` or `mcp_client_refuse`.
  MCP_EVENT_KIND_INPUT = 8,
} mcp_event_kind;

// What a server offers: its name, and its tools, resources and prompts with their functions. One
// catalog serves any number of connections.
typedef struct mcp_catalog mcp_catalog;

// A client for one connection. Driven by one thread at a time.
typedef struct mcp_client mcp_client;

// A server for one connection. Driven by one thread at a time.
typedef struct mcp_server mcp_server;

// Text that belongs to the library: UTF-8 of `length` bytes, **without** a zero at its end. `data`
// may be null if `length` is 0. What it is an argument or a member of says how long it lives.
typedef struct mcp_text {
  // The first byte.
  const char *data;
  // The number of bytes.
  size_t length;
} mcp_text;

// An event. It and its texts live until the callback that receives it returns.
typedef struct mcp_event {
  // The kind, which says which members are used. Others are 0 or empty.
  enum mcp_event_kind kind;
  // A request, a call or an input request.
  uint64_t id;
  // The method.
  struct mcp_text name;
  // JSON, or text for people.
  struct mcp_text text;
  // Why a call failed.
  enum mcp_error error;
  // The error code of the other side, if `error` is `MCP_ERROR_REFUSED`.
  int64_t code;
  // Progress so far.
  double progress;
  // The last value of `progress`, or less than 0 if it is not known.
  double total;
  // The time of the call that caused the event, in milliseconds.
  uint64_t now;
} mcp_event;

// A function of the program that receives the events of a connection. It may call only those
// functions of `client` whose description allows it; the others return `MCP_ERROR_BUSY`.
typedef void (*mcp_client_event_function)(void *context,
                                          struct mcp_client *client,
                                          const struct mcp_event *event);

#if defined(MCP_BARE_METAL)
// Handles a panic: the memory is used up, or the library has a bug. It must not return, and must not
// call the library: reset the device.
typedef void (*mcp_panic)(void *context);
#endif

#if defined(MCP_BARE_METAL)
// Allocates `size` bytes, aligned to `alignment`, a power of two. Returns null if there is no memory.
typedef void *(*mcp_allocate)(void *context, size_t size, size_t alignment);
#endif

#if defined(MCP_BARE_METAL)
// Frees what the function above returned, with the same size and alignment.
typedef void (*mcp_release)(void *context, void *memory, size_t size, size_t alignment);
#endif

// A function of the program that receives the events of a connection.
typedef void (*mcp_server_event_function)(void *context,
                                          struct mcp_server *server,
                                          const struct mcp_event *event);

// A request of the client. It and its texts live until the function that receives it returns; only
// `id` may be kept.
typedef struct mcp_request {
  // Identifies the request until it is answered or cancelled. Not 0, and not used again soon.
  uint64_t id;
  // The method: `tools/call`, `resources/read` or `prompts/get`.
  struct mcp_text method;
  // The name of the tool or the prompt, or the URI of the resource, without escapes.
  struct mcp_text name;
  // The arguments, a JSON object: read them with `mcp_json_string` and its like. They are not
  // checked against the schema of the tool.
  struct mcp_text arguments;
  // Whether the client asked for progress.
  bool wants_progress;
  // The time of the call that delivered the request, in milliseconds.
  uint64_t now;
} mcp_request;

// A function of the program that serves a tool, a resource or a prompt.
//
// It answers `request` with one of `mcp_respond_text`, `mcp_respond_json`, `mcp_respond_tool_error`
// and `mcp_respond_error`, before it returns or at any time later, but in the thread that drives
// `server`. `context` is the pointer that was registered. The function may call only those functions
// of `server` whose description allows it; the others return `MCP_ERROR_BUSY`.
typedef void (*mcp_request_function)(void *context,
                                     struct mcp_server *server,
                                     const struct mcp_request *request);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns a description of an error in English: a static text that is always valid, also for
// numbers that are no error of this library.
const char *mcp_error_text(int32_t error);

// Finds the member `name` of the object `json`. `*value` is its text as written (strings with their
// quotes and escapes), a part of `json`.
enum mcp_error mcp_json_member(struct mcp_text json, const char *name, struct mcp_text *value);

// Reads the member `name` of the object `json`, an integer; `3.0` is one.
enum mcp_error mcp_json_integer(struct mcp_text json, const char *name, int64_t *value);

// Reads the member `name` of the object `json`, a number.
enum mcp_error mcp_json_number(struct mcp_text json, const char *name, double *value);

// Reads the member `name` of the object `json`, `true` or `false`.
enum mcp_error mcp_json_boolean(struct mcp_text json, const char *name, bool *value);

// Copies the member `name` of the object `json`, a string, into `buffer` of `size` bytes, without
// quotes and escapes and with a zero at its end. A string that contains a zero is of another type.
//
// `length` may be null. Otherwise `*length` is the number of bytes of the string without the zero,
// also after `MCP_ERROR_SPACE`.
enum mcp_error mcp_json_string(struct mcp_text json,
                               const char *name,
                               char *buffer,
                               size_t size,
                               size_t *length);

// Writes `text` as a JSON string with quotes and escapes into `buffer` of `size` bytes, with a zero
// at its end. For `length` see `mcp_json_string`.
enum mcp_error mcp_json_quote(const char *text, char *buffer, size_t size, size_t *length);

// Returns a text of the program for the functions above, which lives as long as `text`. The result
// is empty if `text` is null or not UTF-8.
struct mcp_text mcp_text_of(const char *text);

// Returns whether `text` equals `other`. `false` if `other` is null.
bool mcp_text_equals(struct mcp_text text, const char *other);

// Creates a client for one connection, with this name and version. Its first message is ready to
// send. Free it with `mcp_client_free`.
//
// `capabilities` is the JSON object of what the program can do for servers, such as
// `{"roots":{},"elicitation":{}}`; null for nothing. `on_event` receives `MCP_EVENT_KIND_OPENED`
// before calls can be made. `seed` protects hash tables against chosen names: draw it at random, if
// servers are not trusted.
enum mcp_error mcp_client_new(const char *name,
                              const char *version,
                              const char *capabilities,
                              mcp_client_event_function on_event,
                              void *context,
                              uint64_t seed,
                              struct mcp_client **client,
                              uint64_t now);

// Frees a client, which may be null, with all that belongs to it. Calls end without an event. Fails
// in a callback of the client.
enum mcp_error mcp_client_free(struct mcp_client *client);

// Returns memory to receive into: see `mcp_server_space`.
uint8_t *mcp_client_space(struct mcp_client *client, size_t *size);

// Handles bytes that were received: see `mcp_server_received`.
enum mcp_error mcp_client_received(struct mcp_client *client, size_t length, uint64_t now);

// Handles bytes of the program: see `mcp_server_receive`.
enum mcp_error mcp_client_receive(struct mcp_client *client,
                                  const uint8_t *data,
                                  size_t length,
                                  size_t *taken,
                                  uint64_t now);

// Reports the end of the input: every call ends with `MCP_ERROR_CLOSED`.
enum mcp_error mcp_client_end_of_input(struct mcp_client *client, uint64_t now);

// Returns output to send: see `mcp_server_transmit`.
const uint8_t *mcp_client_transmit(struct mcp_client *client, size_t *length);

// Removes output that was sent: see `mcp_server_sent`.
enum mcp_error mcp_client_sent(struct mcp_client *client, size_t length, uint64_t now);

// Returns when to call `mcp_client_handle_timeout` at the latest: see `mcp_server_deadline`.
uint64_t mcp_client_deadline(const struct mcp_client *client);

// Processes expired deadlines: calls without an answer end. Extra calls do nothing.
enum mcp_error mcp_client_handle_timeout(struct mcp_client *client, uint64_t now);

// Closes the connection: every call ends with `MCP_ERROR_CLOSED`. Allowed in callbacks; their events
// come after it.
enum mcp_error mcp_client_close(struct mcp_client *client,
                                uint64_t now);

// Returns whether the connection is over: close the stream, and free the client. Also `true` if
// `client` is null.
bool mcp_client_is_over(const struct mcp_client *client);

// Calls a tool. `arguments` is a JSON object, or null for none. The call ends with one event,
// `MCP_EVENT_KIND_RESULT` or `MCP_EVENT_KIND_FAILED`; `*call` identifies it until then, and is never
// 0. `timeout_ms` is the longest time without an answer or progress, or 0 for 60 s; `progress` asks
// for events of progress. Allowed in callbacks.
//
// `MCP_ERROR_STATE`: the connection is not open yet.
enum mcp_error mcp_client_call_tool(struct mcp_client *client,
                                    const char *name,
                                    const char *arguments,
                                    uint32_t timeout_ms,
                                    bool progress,
                                    uint64_t *call,
                                    uint64_t now);

// Sends another request of the protocol, such as `tools/list` or `resources/read`, with `params`, a
// JSON object without `_meta`, or null for none. Otherwise like `mcp_client_call_tool`.
enum mcp_error mcp_client_call(struct mcp_client *client,
                               const char *method,
                               const char *params,
                               uint32_t timeout_ms,
                               bool progress,
                               uint64_t *call,
                               uint64_t now);

// Cancels a call, which ends with `MCP_ERROR_CANCELLED`; `reason` is for the server, and may be
// null. Does nothing if the call has ended. Allowed in callbacks; the event comes after it.
enum mcp_error mcp_client_cancel(struct mcp_client *client,
                                 uint64_t call,
                                 const char *reason,
                                 uint64_t now);

// Answers an input request with `answer`, the result of its method as a JSON object, such as
// `{"action":"accept","content":{"name":"Ada"}}`. Allowed in callbacks.
enum mcp_error mcp_client_answer(struct mcp_client *client,
                                 uint64_t input,
                                 const char *answer,
                                 uint64_t now);

// Refuses an input request with an error of JSON-RPC, such as -32603. Allowed in callbacks.
enum mcp_error mcp_client_refuse(struct mcp_client *client,
                                 uint64_t input,
                                 int32_t code,
                                 const char *message,
                                 uint64_t now);

#if defined(MCP_BARE_METAL)
// Gives the library its memory: `length` bytes at `memory`, for as long as the program runs, and for
// nothing else. Call this or `mcp_start` once, before all other functions. Only on bare metal.
//
// With an arena, all calls of the library have to come from one thread, and none from an interrupt.
enum mcp_error mcp_start_arena(void *memory,
                               size_t length,
                               mcp_panic on_panic,
                               void *context);
#endif

#if defined(MCP_BARE_METAL)
// Makes the library allocate with functions of the program, such as those of a real-time operating
// system. Call this or `mcp_start_arena` once, before all other functions. Only on bare metal.
//
// If several threads call the library, the functions have to be safe for that.
enum mcp_error mcp_start(mcp_allocate allocate,
                         mcp_release release,
                         mcp_panic on_panic,
                         void *context);
#endif

#if defined(MCP_BARE_METAL)
// Returns the largest number of bytes of the arena that were in use, 0 without an arena. Only on
// bare metal.
size_t mcp_arena_peak(void);
#endif

// Creates a catalog without items, for a server with this name and version. Free it with
// `mcp_catalog_free`.
enum mcp_error mcp_catalog_new(const char *name, const char *version, struct mcp_catalog **catalog);

// Frees a catalog, which may be null. Servers that were made from it keep what they need.
void mcp_catalog_free(struct mcp_catalog *catalog);

// Tells clients how to use the server: a text for the model.
enum mcp_error mcp_catalog_instructions(struct mcp_catalog *catalog, const char *text);

// Selects limits for a program with some ten kilobytes of memory and one client, and lines of at
// most `line_length_max` bytes. They are the default on bare metal, with 2,048 bytes; a hosted
// program accepts lines of 16 MiB by default.
enum mcp_error mcp_catalog_limit(struct mcp_catalog *catalog, size_t line_length_max);

// Declares that the server sends log messages, with `mcp_server_log`.
enum mcp_error mcp_catalog_logging(struct mcp_catalog *catalog);

// Lets clients subscribe to resources. Report changes with `mcp_server_resource_updated`.
enum mcp_error mcp_catalog_subscriptions(struct mcp_catalog *catalog);

// Sets the function for events of connections, such as cancellations. `function` may be null.
enum mcp_error mcp_catalog_on_event(struct mcp_catalog *catalog,
                                    mcp_server_event_function function,
                                    void *context);

// Adds a tool. `description` may be null. `input_schema` is the JSON schema of its arguments, an
// object of the type `object`; null for a tool without arguments.
enum mcp_error mcp_catalog_add_tool(struct mcp_catalog *catalog,
                                    const char *name,
                                    const char *description,
                                    const char *input_schema,
                                    mcp_request_function function,
                                    void *context);

// Adds a resource. `description` and `mime_type` may be null.
enum mcp_error mcp_catalog_add_resource(struct mcp_catalog *catalog,
                                        const char *uri,
                                        const char *name,
                                        const char *description,
                                        const char *mime_type,
                                        mcp_request_function function,
                                        void *context);

// Adds a prompt. `description` may be null. `arguments` is a JSON array of its arguments, such as
// `[{"name":"room","required":true}]`; null for a prompt without arguments.
enum mcp_error mcp_catalog_add_prompt(struct mcp_catalog *catalog,
                                      const char *name,
                                      const char *description,
                                      const char *arguments,
                                      mcp_request_function function,
                                      void *context);

// Creates a server for one connection, with what the catalog contains now. Free it with
// `mcp_server_free`.
//
// `seed` protects hash tables against chosen names: draw it at random for each connection, if peers
// are not trusted.
enum mcp_error mcp_server_new(const struct mcp_catalog *catalog,
                              uint64_t seed,
                              struct mcp_server **server);

// Frees a server, which may be null, with all that belongs to it: texts, input and output.
// Requests get no answer. Fails in a callback of the server.
enum mcp_error mcp_server_free(struct mcp_server *server);

// Returns memory to receive into, of `*size` bytes. Follow with `mcp_server_received`. `*size` is 0
// if no input is accepted now: after its end, and while output has to be sent first. The pointer is
// valid until the next call for `server`.
uint8_t *mcp_server_space(struct mcp_server *server, size_t *size);

// Handles `length` bytes that were received into the memory of `mcp_server_space`. They need not be
// complete messages. Functions of the catalog run during this call.
enum mcp_error mcp_server_received(struct mcp_server *server, size_t length, uint64_t now);

// Like `mcp_server_space` and `mcp_server_received` with bytes of the program. `*taken` is less than
// `length` if output has to be sent first; pass the others again after that.
enum mcp_error mcp_server_receive(struct mcp_server *server,
                                  const uint8_t *data,
                                  size_t length,
                                  size_t *taken,
                                  uint64_t now);

// Reports the end of the input. Requests can still be answered for 1.5 s: go on until
// `mcp_server_is_over`.
enum mcp_error mcp_server_end_of_input(struct mcp_server *server, uint64_t now);

// Returns output to send, `*length` bytes, or null if there is none. It is valid until the next call
// for `server`. Report what was sent with `mcp_server_sent`; after that there may be more.
const uint8_t *mcp_server_transmit(struct mcp_server *server,
                                   size_t *length);

// Removes the first `length` bytes of the output, and continues with input that had to wait.
enum mcp_error mcp_server_sent(struct mcp_server *server, size_t length, uint64_t now);

// Returns when to call `mcp_server_handle_timeout` at the latest, or `UINT64_MAX` for never. Every
// other call may change it. Allowed in callbacks: there it is 0, which means now, if the connection
// is ending; the rest of the call that runs the callback may change it, too.
uint64_t mcp_server_deadline(const struct mcp_server *server);

// Processes expired deadlines. Extra calls do nothing.
enum mcp_error mcp_server_handle_timeout(struct mcp_server *server, uint64_t now);

// Closes the connection: requests get no answer. Allowed in callbacks.
enum mcp_error mcp_server_close(struct mcp_server *server, uint64_t now);

// Returns whether the connection is over: close the stream, and free the server. Also `true` if
// `server` is null.
bool mcp_server_is_over(const struct mcp_server *server);

// Answers a request with a text: the result of a tool, the contents of a resource, or a message of
// the user for a prompt. Allowed in callbacks.
//
// `MCP_ERROR_NOT_DUE` is no mistake if the client can cancel requests.
enum mcp_error mcp_respond_text(struct mcp_server *server,
                                uint64_t request,
                                const char *text,
                                uint64_t now);

// Answers a request with a result as JSON: the whole object that the protocol defines for its
// method, such as `{"content":[{"type":"text","text":"21"}],"structuredContent":{"celsius":21}}`.
// Members that a revision requires in every result are added. Allowed in callbacks.
enum mcp_error mcp_respond_json(struct mcp_server *server,
                                uint64_t request,
                                const char *result,
                                uint64_t now);

// Answers the call of a tool with a failure that the model sees, and can correct. Other requests are
// answered with an internal error. Allowed in callbacks.
enum mcp_error mcp_respond_tool_error(struct mcp_server *server,
                                      uint64_t request,
                                      const char *text,
                                      uint64_t now);

// Answers a request with an error of JSON-RPC, such as -32602 for invalid parameters. Allowed in
// callbacks.
enum mcp_error mcp_respond_error(struct mcp_server *server,
                                 uint64_t request,
                                 int32_t code,
                                 const char *message,
                                 uint64_t now);

// Reports the progress of a request, which has to increase. `total` is the last value, or less than 0
// if it is not known; `message` may be null. Nothing is sent if the client did not ask for progress,
// or receives too slowly. Allowed in callbacks.
enum mcp_error mcp_server_progress(struct mcp_server *server,
                                   uint64_t request,
                                   double progress,
                                   double total,
                                   const char *message,
                                   uint64_t now);

// Sends a log message, if the client wants messages of this level. `request` is the request that it
// belongs to, or 0. `level` is 0 (debug), 1 (info), 2 (notice), 3 (warning), 4 (error), 5
// (critical), 6 (alert) or 7 (emergency). `logger` may be null. Allowed in callbacks.
enum mcp_error mcp_server_log(struct mcp_server *server,
                              uint64_t request,
                              int32_t level,
                              const char *logger,
                              const char *text,
                              uint64_t now);

// Tells clients that subscribed to it that a resource changed. Allowed in callbacks.
enum mcp_error mcp_server_resource_updated(struct mcp_server *server,
                                           const char *uri,
                                           uint64_t now);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MCP_SANSIO_H */
