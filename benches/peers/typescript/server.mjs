#!/usr/bin/env node
// The TypeScript SDK in the comparison: `server.mjs documented stdio` or `server.mjs
// documented|stored http ADDRESS`.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const text = (text) => ({ content: [{ type: 'text', text }] });

function server() {
  const server = new McpServer({ name: 'bench-server', version: '1.0.0' });
  server.registerTool(
    'echo',
    { description: 'Sends the text back', inputSchema: z.object({ text: z.string() }) },
    async (echo) => text(echo.text),
  );
  server.registerTool(
    'add',
    { description: 'Adds two numbers', inputSchema: z.object({ a: z.number(), b: z.number() }) },
    async ({ a, b }) => text(String(a + b)),
  );
  server.registerTool(
    'progress',
    {
      description: 'Reports progress, step by step',
      inputSchema: z.object({ count: z.number().int() }),
    },
    async ({ count }, context) => {
      const { progressToken } = context.mcpReq._meta;
      for (let progress = 1; progress <= count; progress += 1) {
        const params = { progressToken, progress, total: count };
        await context.mcpReq.notify({ method: 'notifications/progress', params });
      }
      return text(`${count} steps`);
    },
  );
  return server;
}

// The last events, in memory: the least that a store costs, without a network.
class EventStore {
  #events = new Map();
  #next = 0;

  async storeEvent(streamId, message) {
    const id = `${streamId}_${(this.#next += 1)}`;
    this.#events.set(id, { streamId, message });
    if (this.#events.size > 100_000) this.#events.delete(this.#events.keys().next().value);
    return id;
  }

  async getStreamIdForEventId(id) {
    return this.#events.get(id)?.streamId;
  }

  async replayEventsAfter(last, { send }) {
    const streamId = this.#events.get(last)?.streamId;
    let found = false;
    for (const [id, event] of this.#events) {
      if (found && event.streamId === streamId) await send(id, event.message);
      found ||= id === last;
    }
    return streamId;
  }
}

function serveHttp(address, eventStore) {
  const transports = new Map();
  const open = async () => {
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore,
      onsessioninitialized: (id) => transports.set(id, transport),
      onsessionclosed: (id) => transports.delete(id),
    });
    await server().connect(transport);
    return transport;
  };
  const [host, port] = address.split(':');
  createServer(async (request, response) => {
    const id = request.headers['mcp-session-id'];
    const transport = transports.get(id) ?? (await open());
    await transport.handleRequest(request, response);
  }).listen(Number(port), host);
}

const [variant, transport, address] = process.argv.slice(2);
if (transport === 'stdio') serveStdio(server);
else serveHttp(address, variant === 'stored' ? new EventStore() : undefined);
