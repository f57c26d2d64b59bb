/* What the example servers offer: a thermometer with a lamp. */
#ifndef THERMOMETER_H
#define THERMOMETER_H

#include "mcp_sansio.h"

/* A call of `average` that is not answered yet. */
struct average {
    mcp_server *server; /* Null if this entry is free. */
    uint64_t request, due;
    int samples, taken;
};

struct thermometer {
    struct average running[8];
    uint64_t measured, next_measurement;
    bool changed, lamp; /* Whether the last call of `thermometer_advance` measured another temperature. */
    size_t (*heap_peak)(void), (*stack_peak)(void); /* May be null. */
};

/* Makes the catalog. `self` must live as long as its servers. */
mcp_error thermometer_catalog(struct thermometer *self, mcp_catalog **catalog);

/* The resource to report as updated if the temperature has changed. */
#define THERMOMETER_TEMPERATURE "sensor://temperature"

/* Measures, and continues the calls of `average`. Returns when to do so again. */
uint64_t thermometer_advance(struct thermometer *self, uint64_t now);

/* Drops the calls of a server that is about to be freed. */
void thermometer_forget(struct thermometer *self, const mcp_server *server);

#endif
