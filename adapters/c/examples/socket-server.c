/* A server for many clients on a loopback socket: socket-server [PORT]. Prints its port. */
#define _POSIX_C_SOURCE 200809L
#include "thermometer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MAX 64

static struct thermometer thermometer;
static mcp_server *servers[CLIENTS_MAX];
static int sockets[CLIENTS_MAX];
/* What to wait for: the sockets in use, then the listener. */
static struct pollfd files[CLIENTS_MAX + 1];

static uint64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static int listen_on(int port)
{
    struct sockaddr_in address = {0};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)port);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0
        || listen(listener, 16) != 0 || getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        return -1;
    printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static void accept_client(const mcp_catalog *catalog, int listener)
{
    size_t i;
    int client = accept(listener, NULL, NULL);
    for (i = 0; client >= 0 && i < CLIENTS_MAX; i++) {
        if (!servers[i]) {
            fcntl(client, F_SETFL, fcntl(client, F_GETFL) | O_NONBLOCK);
            sockets[i] = client;
            /* Where clients are not trusted, the seed should be random. */
            if (mcp_server_new(catalog, now_ms(), &servers[i]) == MCP_ERROR_NONE)
                return;
            break;
        }
    }
    if (client >= 0)
        close(client);
}

static void drop_client(size_t i)
{
    thermometer_forget(&thermometer, servers[i]);
    mcp_server_free(servers[i]);
    close(sockets[i]);
    servers[i] = NULL;
}

static bool is_fatal(ssize_t moved)
{
    return moved < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
}

/* Reads and writes without blocking. Returns whether the connection goes on. */
static bool move_bytes(size_t i)
{
    mcp_server *server = servers[i];
    size_t size;
    const uint8_t *output;
    uint8_t *space = files[i].revents & ~POLLOUT ? mcp_server_space(server, &size) : NULL;
    if (space) {
        ssize_t length = read(sockets[i], space, size);
        if (length > 0)
            mcp_server_received(server, (size_t)length, now_ms());
        else if (length == 0 || is_fatal(length))
            mcp_server_end_of_input(server, now_ms());
    }
    mcp_server_handle_timeout(server, now_ms());
    files[i].events = 0;
    while ((output = mcp_server_transmit(server, &size)) != NULL) {
        ssize_t written = write(sockets[i], output, size);
        if (is_fatal(written))
            return false;
        if (written < 0) {
            files[i].events = POLLOUT;
            break;
        }
        mcp_server_sent(server, (size_t)written, now_ms());
    }
    mcp_server_space(server, &size);
    if (size > 0)
        files[i].events |= POLLIN;
    return !mcp_server_is_over(server);
}

int main(int count, char **values)
{
    mcp_catalog *catalog;
    int listener = listen_on(count > 1 ? atoi(values[1]) : 0);
    mcp_error error = thermometer_catalog(&thermometer, &catalog);
    if (listener < 0 || error != MCP_ERROR_NONE) {
        fprintf(stderr, "%s\n", listener < 0 ? "cannot listen" : mcp_error_text(error));
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    files[CLIENTS_MAX].fd = listener;
    files[CLIENTS_MAX].events = POLLIN;
    for (;;) {
        uint64_t now = now_ms(), due = thermometer_advance(&thermometer, now);
        size_t i;
        for (i = 0; i < CLIENTS_MAX; i++) {
            if (servers[i] && thermometer.changed)
                mcp_server_resource_updated(servers[i], THERMOMETER_TEMPERATURE, now);
            if (servers[i] && !move_bytes(i))
                drop_client(i);
            files[i].revents = 0;
            files[i].fd = servers[i] && files[i].events ? sockets[i] : -1;
            if (servers[i] && mcp_server_deadline(servers[i]) < due)
                due = mcp_server_deadline(servers[i]);
        }
        now = now_ms();
        poll(files, CLIENTS_MAX + 1, due <= now ? 0 : (int)(due - now));
        if (files[CLIENTS_MAX].revents)
            accept_client(catalog, listener);
    }
}
