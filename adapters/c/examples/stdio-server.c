/* A server on the standard streams. */
#define _POSIX_C_SOURCE 200809L
#include "thermometer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static int is_fatal(void)
{
    return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
}

/* Whether the client has closed the output. */
static bool is_closed;

/* Writes without blocking. Returns whether there is more to write. */
static bool write_output(mcp_server *server)
{
    const uint8_t *output;
    size_t length;
    while ((output = mcp_server_transmit(server, &length)) != NULL) {
        ssize_t written = write(STDOUT_FILENO, output, length);
        if (written < 0) {
            is_closed = is_fatal();
            return true;
        }
        mcp_server_sent(server, (size_t)written, now_ms());
    }
    return false;
}

/* Reads what there is. */
static void read_input(mcp_server *server)
{
    size_t size;
    uint8_t *space = mcp_server_space(server, &size);
    ssize_t length = space ? read(STDIN_FILENO, space, size) : -1;
    if (length > 0)
        mcp_server_received(server, (size_t)length, now_ms());
    else if (space && (length == 0 || is_fatal()))
        mcp_server_end_of_input(server, now_ms());
}

int main(void)
{
    static struct thermometer thermometer;
    mcp_catalog *catalog;
    mcp_server *server;
    mcp_error error = thermometer_catalog(&thermometer, &catalog);
    if (error == MCP_ERROR_NONE)
        error = mcp_server_new(catalog, now_ms(), &server);
    if (error != MCP_ERROR_NONE) {
        fprintf(stderr, "%s\n", mcp_error_text(error));
        return 1;
    }
    mcp_catalog_free(catalog);
    /* A client that writes without reading must not block this program. */
    signal(SIGPIPE, SIG_IGN);
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
    while (!mcp_server_is_over(server)) {
        struct pollfd files[2] = {{STDIN_FILENO, 0, 0}, {STDOUT_FILENO, 0, 0}};
        uint64_t now = now_ms(), due = thermometer_advance(&thermometer, now);
        size_t size;
        bool is_waiting;
        if (thermometer.changed)
            mcp_server_resource_updated(server, THERMOMETER_TEMPERATURE, now);
        is_waiting = write_output(server);
        if (mcp_server_deadline(server) < due)
            due = mcp_server_deadline(server);
        mcp_server_space(server, &size);
        files[0].events = size > 0 ? POLLIN : 0;
        files[0].fd = size > 0 ? STDIN_FILENO : -1;
        files[1].events = is_waiting ? POLLOUT : 0;
        if (is_closed || mcp_server_is_over(server))
            break;
        now = now_ms();
        poll(files, 2, due <= now ? 0 : (int)(due - now));
        if (files[1].revents & (POLLERR | POLLNVAL))
            break;
        if (files[0].revents)
            read_input(server);
        mcp_server_handle_timeout(server, now_ms());
    }
    thermometer_forget(&thermometer, server);
    mcp_server_free(server);
    return 0;
}
