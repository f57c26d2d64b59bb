// Runs in a page of `test.mjs`: uses the module in Workers with the official SDK, and posts what it has
// seen.
import { Client } from '@modelcontextprotocol/client';

import { MessagePortTransport } from './message-port.mjs';

async function connect(worker, mode = 'auto') {
  const { port1, port2 } = new MessageChannel();
  worker.postMessage(null, [port2]);
  const client = new Client({ name: 'page', version: '1.0.0' }, { versionNegotiation: { mode } });
  await client.connect(new MessagePortTransport(port1));
  return client;
}

async function use(client) {
  const revision = client.getNegotiatedProtocolVersion();
  const { tools } = await client.listTools();
  const { content } = await client.callTool({ name: 'echo', arguments: { text: 'fjörd \u{1f30a}' } });
  const progress = [];
  const onprogress = (seen) => progress.push(`${seen.progress} of ${seen.total}`);
  await client.callTool({ name: 'countdown', arguments: { steps: 3 } }, { onprogress });
  const closed = new Promise((resolve) => (client.onclose = () => resolve(true)));
  await client.close();
  return {
    revision,
    tools: tools.map((tool) => tool.name).sort(),
    echo: content[0].text,
    progress,
    closed: await closed,
  };
}

// Returns the message of the error that a promise is rejected with.
const failure = (promise) => promise.then(() => 'it did not fail', (error) => error.message);

async function run() {
  const worker = new Worker('/worker.mjs', { type: 'module' });
  const modern = await use(await connect(worker));
  const legacy = await use(await connect(worker, 'legacy'));
  // More than the module has room for at once.
  let connections = 0;
  for (; connections < 100; connections++) await (await connect(worker)).close();
  const broken = await failure(connect(new Worker('/broken/worker.mjs', { type: 'module' }), 'legacy'));
  return { modern, legacy, connections, broken };
}

const report = await run().catch((error) => ({ error: `${error}\n${error.stack}` }));
await fetch('/', { method: 'POST', body: JSON.stringify(report) });
