/* A client that starts a server, lists its tools and calls one.
 *
 * client TOOL ARGUMENTS COMMAND [ARGUMENT...]
 */
#define _POSIX_C_SOURCE 200809L
#include "mcp_sansio.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct program {
    const char *tool, *arguments;
    uint64_t list, call;
    bool succeeded;
};

static uint64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static void on_event(void *context, mcp_client *client, const mcp_event *event)
{
    struct program *self = context;
    int length = (int)event->text.length;
    const char *text = event->text.data;
    switch (event->kind) {
    case MCP_EVENT_KIND_OPENED:
        printf("revision: %.*s\n", length, text);
        mcp_client_call(client, "tools/list", NULL, 0, false, &self->list, event->now);
        break;
    case MCP_EVENT_KIND_PROGRESS:
        printf("progress: %g of %g\n", event->progress, event->total);
        break;
    case MCP_EVENT_KIND_RESULT:
        printf("%s: %.*s\n", event->id == self->list ? "tools" : "result", length, text);
        if (event->id == self->list) {
            mcp_error error = mcp_client_call_tool(client, self->tool, self->arguments, 0, true, &self->call,
                                                   event->now);
            if (error == MCP_ERROR_NONE)
                break;
            fprintf(stderr, "not called: %s\n", mcp_error_text(error));
        } else {
            self->succeeded = true;
        }
        mcp_client_close(client, event->now);
        break;
    case MCP_EVENT_KIND_FAILED:
        fprintf(stderr, "failed: %s: %.*s\n", mcp_error_text(event->error), length, text);
        mcp_client_close(client, event->now);
        break;
    case MCP_EVENT_KIND_INPUT: /* This client has no user. */
        mcp_client_refuse(client, event->id, -32603, "nobody can answer", event->now);
        break;
    case MCP_EVENT_KIND_VIOLATION:
    case MCP_EVENT_KIND_CLOSED:
        fprintf(stderr, "%.*s\n", length, text);
        break;
    default:
        break;
    }
}

/* Starts the server. Its input and output are `*to` and `*from`. */
static pid_t start(char **command, int *to, int *from)
{
    int input[2], output[2];
    pid_t child;
    if (pipe(input) != 0 || pipe(output) != 0 || (child = fork()) < 0) {
        perror("cannot start the server");
        return -1;
    }
    if (child == 0) {
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        close(input[0]), close(input[1]), close(output[0]), close(output[1]);
        execvp(command[0], command);
        perror(command[0]);
        _exit(127);
    }
    close(input[0]), close(output[1]);
    *to = input[1], *from = output[0];
    return child;
}

/* Moves bytes until the connection is over. Requests are short, so that writing may block. */
static void run(mcp_client *client, int to, int from)
{
    while (!mcp_client_is_over(client)) {
        uint64_t now = now_ms(), due = mcp_client_deadline(client);
        struct pollfd file = {from, POLLIN, 0};
        size_t length, size;
        const uint8_t *output;
        uint8_t *space;
        while ((output = mcp_client_transmit(client, &length)) != NULL) {
            ssize_t written = write(to, output, length);
            if (written < 0 && errno != EINTR)
                break; /* The end of the server's output follows. */
            mcp_client_sent(client, written < 0 ? 0 : (size_t)written, now);
        }
        if (mcp_client_is_over(client))
            break;
        poll(&file, 1, due == UINT64_MAX ? -1 : due <= now ? 0 : due - now > 60000 ? 60000 : (int)(due - now));
        now = now_ms();
        space = mcp_client_space(client, &size);
        if (file.revents && space) {
            ssize_t received = read(from, space, size);
            if (received > 0)
                mcp_client_received(client, (size_t)received, now);
            else if (received == 0 || errno != EINTR)
                mcp_client_end_of_input(client, now);
        }
        mcp_client_handle_timeout(client, now);
    }
}

int main(int count, char **values)
{
    struct program self = {0};
    mcp_client *client;
    mcp_error error;
    int to, from;
    pid_t child;
    if (count < 4) {
        fprintf(stderr, "client TOOL ARGUMENTS COMMAND [ARGUMENT...]\n");
        return 2;
    }
    self.tool = values[1], self.arguments = values[2];
    signal(SIGPIPE, SIG_IGN);
    error = mcp_client_new("example", "1.0.0", NULL, on_event, &self, now_ms(), &client, now_ms());
    if (error != MCP_ERROR_NONE) {
        fprintf(stderr, "%s\n", mcp_error_text(error));
        return 1;
    }
    child = start(values + 3, &to, &from);
    if (child > 0) {
        run(client, to, from);
        close(to), close(from);
        waitpid(child, NULL, 0);
    }
    mcp_client_free(client);
    return self.succeeded ? 0 : 1;
}
