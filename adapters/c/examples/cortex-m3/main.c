/* A server on UART 0 of QEMU's board lm3s6965evb, a Cortex-M3 without an operating system.
 *
 * The UART is polled, which is enough for QEMU: it waits until a byte was read. A device receives in
 * an interrupt, into a ring buffer. UART 1 reports why the device was reset.
 */
#define MCP_BARE_METAL
#include "../thermometer.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define UART0 0x4000c000u
#define UART1 0x4000d000u
#define DATA(uart) REGISTER((uart) + 0x00)
#define FLAGS(uart) REGISTER((uart) + 0x18)
#define RECEIVE_EMPTY (1u << 4)
#define TRANSMIT_FULL (1u << 5)
#define BREAK (1u << 10)
#define FAULTS (15u << 8)
#define SYSTICK_CONTROL REGISTER(0xe000e010)
#define SYSTICK_RELOAD REGISTER(0xe000e014)
#define SYSTICK_VALUE REGISTER(0xe000e018)
#define RESET_CONTROL REGISTER(0xe000ed0c)
#define HERTZ 12000000u
#define PAINT 0xa5a5a5a5u

/* Where the memory after the variables begins, and the end of the stack. */
extern uint32_t __heap_start[], __stack[];

static uint64_t arena[12 * 1024 / sizeof(uint64_t)];
static volatile uint32_t ticks;
static struct thermometer thermometer;

static void send(uint32_t uart, uint8_t byte)
{
    while (FLAGS(uart) & TRANSMIT_FULL) {
    }
    DATA(uart) = byte;
}

static void reset(const char *reason)
{
    while (*reason)
        send(UART1, (uint8_t)*reason++);
    RESET_CONTROL = 0x05fa0004;
    for (;;) {
    }
}

static void on_panic(void *context)
{
    (void)context;
    reset("panic\n");
}

static void on_fault(void)
{
    reset("fault\n");
}

static void on_tick(void)
{
    ticks++;
}

/* Does not run backwards: it wraps after 49 days, which a device that runs longer has to handle. */
static uint64_t now_ms(void)
{
    return ticks;
}

static size_t stack_peak(void)
{
    const volatile uint32_t *word = __heap_start;
    while (*word == PAINT)
        word++;
    return (size_t)((const char *)__stack - (const char *)word);
}

void _start(void);

union vector {
    const void *stack;
    void (*handler)(void);
};

/* The stack, then the handlers of exceptions, by their numbers. */
__attribute__((section(".data.init.enter"), used)) const union vector __interrupt_vector[16] = {
    {__stack},
    [1].handler = _start,
    [2].handler = on_fault, [3].handler = on_fault, [4].handler = on_fault, [5].handler = on_fault,
    [6].handler = on_fault, [11].handler = on_fault, [12].handler = on_fault, [14].handler = on_fault,
    [15].handler = on_tick,
};

static mcp_error end(mcp_server *server)
{
    thermometer_forget(&thermometer, server);
    return mcp_server_free(server);
}

/* Serves one client, until a break on the line. The answers that are left are not for the next one. */
static mcp_error serve(mcp_catalog *catalog)
{
    mcp_server *server;
    mcp_error error = mcp_server_new(catalog, 0, &server);
    if (error != MCP_ERROR_NONE)
        return error;
    while (!mcp_server_is_over(server)) {
        size_t size, length = 0;
        const uint8_t *output;
        uint8_t *space = mcp_server_space(server, &size);
        while (length < size && !(FLAGS(UART0) & RECEIVE_EMPTY)) {
            uint32_t received = DATA(UART0);
            if (received & BREAK)
                return end(server);
            /* JSON has no zero bytes: a message of which bytes are lost or garbled is refused. */
            space[length++] = received & FAULTS ? 0 : (uint8_t)received;
        }
        if (length > 0)
            mcp_server_received(server, length, now_ms());
        thermometer_advance(&thermometer, now_ms());
        if (thermometer.changed)
            mcp_server_resource_updated(server, THERMOMETER_TEMPERATURE, now_ms());
        mcp_server_handle_timeout(server, now_ms());
        while ((output = mcp_server_transmit(server, &length)) != NULL) {
            size_t i;
            for (i = 0; i < length; i++)
                send(UART0, output[i]);
            mcp_server_sent(server, length, now_ms());
        }
    }
    return end(server);
}

int main(void)
{
    mcp_catalog *catalog;
    volatile uint32_t *word;
    mcp_error error;
    for (word = __heap_start; word < (uint32_t *)__builtin_frame_address(0) - 16; word++)
        *word = PAINT;
    SYSTICK_RELOAD = HERTZ / 1000 - 1;
    SYSTICK_VALUE = 0;
    SYSTICK_CONTROL = 7;
    REGISTER(UART0 + 0x2c) = REGISTER(UART1 + 0x2c) = 3u << 5; /* Eight bits. */
    REGISTER(UART0 + 0x30) = REGISTER(UART1 + 0x30) = 3u << 8 | 1; /* On, in both directions. */
    thermometer.heap_peak = mcp_arena_peak;
    thermometer.stack_peak = stack_peak;
    error = mcp_start_arena(arena, sizeof arena, on_panic, NULL);
    if (error == MCP_ERROR_NONE)
        error = thermometer_catalog(&thermometer, &catalog);
    while (error == MCP_ERROR_NONE)
        error = serve(catalog);
    reset(mcp_error_text(error));
    return 0;
}
