#!/usr/bin/env node
// The TypeScript SDK in the comparison: `server.mjs documented stdio`.
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

if (process.argv[3] !== 'stdio') throw new Error('served on standard streams only');
serveStdio(server);
