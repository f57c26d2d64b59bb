// Tests the module with the official TypeScript SDK, in a browser too, and with misbehaving peers.
//
// MCP_WASM_MODULE is the path of the module, by default cargo's output. MCP_INTEROP_NODE is a
// folder whose node_modules contains the SDK. `.ci/wasm` sets both.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { homedir, tmpdir } from 'node:os';
import { delimiter, extname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { MessageChannel } from 'node:worker_threads';

import { MessagePortTransport, serve } from './message-port.mjs';
import { MESSAGE_LENGTH_MAX, WasmTransport } from './transport.mjs';

const file = process.env.MCP_WASM_MODULE ??
  fileURLToPath(new URL('target/wasm32-unknown-unknown/release/mcp_sansio_wasm.wasm', import.meta.url));
const module = new WebAssembly.Module(readFileSync(file));
const instantiate = () => new WebAssembly.Instance(module).exports;

const packages = process.env.MCP_INTEROP_NODE ?? join(homedir(), '.cache/mcp-interop/node');
const sdk = existsSync(join(packages, 'node_modules/@modelcontextprotocol/client'));
const missing = sdk ? false : `no TypeScript SDK in ${packages}: see .ci/interop`;
const load = (name) => import(pathToFileURL(createRequire(join(packages, 'x.js')).resolve(name)));

test('the module imports nothing', () => {
  assert.deepEqual(WebAssembly.Module.imports(module), []);
});

// --- The SDK ---------------------------------------------------------------------------------------

const information = { name: 'wasm-test', version: '1.0.0' };
const accept = () => ({ action: 'accept', content: { name: 'Ada' } });

// Connects a client of the second SDK generation at a revision to an instance of the module.
async function connect(mode, exports, transport = new WasmTransport(exports)) {
  const { Client } = await load('@modelcontextprotocol/client');
  const options = { capabilities: { elicitation: {} }, versionNegotiation: { mode } };
  const client = new Client(information, options);
  client.setRequestHandler('elicitation/create', accept);
  await client.connect(transport);
  return client;
}

// Uses every feature of the server with a client of either generation.
async function useEverything(client, call = (params, options) => client.callTool(params, options)) {
  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name).sort();
  assert.deepEqual(names, ['ask_name', 'countdown', 'echo', 'write_note']);
  const text = async (name, given, options) => {
    const result = await call({ name, arguments: given }, options);
    assert.ok(!result.isError, JSON.stringify(result));
    return result.content[0].text;
  };
  assert.equal(await text('echo', { text: 'fjörd \u{1f30a}' }), 'fjörd \u{1f30a}');
  const seen = [];
  const onprogress = ({ progress, total }) => seen.push(`${progress} of ${total}`);
  assert.equal(await text('countdown', { steps: 3 }, { onprogress }), 'Counted 3 steps.');
  assert.deepEqual(seen, ['1 of 3', '2 of 3', '3 of 3']);
  assert.equal(await text('ask_name', {}), 'Hello, Ada.');
  assert.equal(await text('write_note', { text: 'remember' }), 'Noted.');
  const { resources } = await client.listResources();
  const { contents } = await client.readResource({ uri: resources[0].uri });
  assert.equal(contents[0].text, 'remember');
  const { prompts } = await client.listPrompts();
  const { messages } = await client.getPrompt({ name: prompts[0].name, arguments: { name: 'Ada' } });
  assert.equal(messages[0].content.text, 'Introduce Ada to the others.');
}

for (const [mode, revision] of [
  ['auto', '2026-07-28'], [{ pin: '2026-07-28' }, '2026-07-28'], ['legacy', '2025-11-25'],
]) {
  test(`the SDK uses everything, ${JSON.stringify(mode)}`, { skip: missing }, async () => {
    const client = await connect(mode, instantiate());
    assert.equal(client.getNegotiatedProtocolVersion(), revision);
    await useEverything(client);
    await client.close();
  });
}

test('the first generation of the SDK uses everything', { skip: missing }, async () => {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { ElicitRequestSchema } = await load('@modelcontextprotocol/sdk/types.js');
  const client = new Client(information, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, accept);
  await client.connect(new WasmTransport(instantiate()));
  await useEverything(client, (params, options) => client.callTool(params, undefined, options));
  await client.close();
});

for (const [era, mode] of [['legacy', 'legacy'], ['modern', { pin: '2026-07-28' }]]) {
  test(`a subscriber is notified that the note changed, ${era}`, { skip: missing }, async () => {
    const client = await connect(mode, instantiate());
    const uri = 'note://latest';
    const told = new Promise((resolve) =>
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(params.uri)));
    if (era === 'legacy') await client.subscribeResource({ uri });
    else await client.listen({ resourceSubscriptions: [uri] });
    await client.callTool({ name: 'write_note', arguments: { text: 'new' } });
    assert.equal(await told, uri);
    await client.close();
  });
}

test('a cancelled call stops its handler', { skip: missing }, async () => {
  const exports = instantiate();
  const client = await connect('auto', exports);
  const given = { name: 'countdown', arguments: { steps: 1000 } };
  await assert.rejects(client.callTool(given, { signal: AbortSignal.timeout(80) }));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(exports.next_deadline_ms(1), Infinity);
  await client.close();
});

test('two concurrent connections are independent', { skip: missing }, async () => {
  const exports = instantiate();
  const clients = [await connect('auto', exports), await connect('legacy', exports)];
  const texts = (results) => results.map((result) => (result.content ?? result.contents)[0].text);
  const all = async (use) => texts(await Promise.all(clients.map(use)));
  const count = (client, index) =>
    client.callTool({ name: 'countdown', arguments: { steps: 2 + index } });
  assert.deepEqual(await all(count), ['Counted 2 steps.', 'Counted 3 steps.']);
  await all((client, index) =>
    client.callTool({ name: 'write_note', arguments: { text: `note ${index}` } }));
  const read = (client) => client.readResource({ uri: 'note://latest' });
  assert.deepEqual(await all(read), ['note 0', 'note 1']);
  await clients[0].close();
  assert.deepEqual(texts([await read(clients[1])]), ['note 1']);
  await clients[1].close();
});

for (const call of ['receive', 'handle_timeout']) {
  test(`a trap in ${call} closes the connection`, { skip: missing }, async () => {
    let traps = false;
    const exports = instantiate();
    const trap = (...given) => {
      if (traps) throw new WebAssembly.RuntimeError('unreachable');
      return exports[call](...given);
    };
    const client = await connect('auto', { ...exports, [call]: trap });
    const closed = new Promise((resolve) => (client.onclose = resolve));
    traps = true;
    await assert.rejects(client.callTool({ name: 'countdown', arguments: { steps: 1 } }));
    await closed;
  });
}

test('a message that the server would skip is refused', { skip: missing }, async () => {
  const client = await connect('auto', instantiate());
  const given = (length) => ({ name: 'echo', arguments: { text: '\u{1f30a}'.repeat(length / 4) } });
  await assert.rejects(client.callTool(given(MESSAGE_LENGTH_MAX)), /reads at most 262143/);
  assert.ok((await client.callTool(given(MESSAGE_LENGTH_MAX - 1000))).content[0].text.length > 0);
  await client.close();
});

// --- Over a MessagePort ----------------------------------------------------------------------------

// Serves `exports` at one port of a channel. `served` settles when that ends.
function servePort(exports, signal) {
  const { port1: port, port2 } = new MessageChannel();
  return { port, served: serve(exports, port2, signal) };
}

// Connects a client of the SDK over a channel.
async function connectPort(mode, exports, signal) {
  const { port, served } = servePort(exports, signal);
  return { client: await connect(mode, exports, new MessagePortTransport(port)), served };
}

for (const mode of ['auto', 'legacy']) {
  test(`the SDK uses everything over a port, ${mode}`, { skip: missing }, async () => {
    const exports = instantiate();
    const { client, served } = await connectPort(mode, exports);
    await useEverything(client);
    assert.equal(exports.is_over(1), 0);
    await client.close();
    await served;
    assert.equal(exports.is_over(1), 1);
  });
}

test('a call over a port is cancelled', { skip: missing }, async () => {
  const exports = instantiate();
  const { client, served } = await connectPort('auto', exports);
  const abort = new AbortController();
  const onprogress = () => abort.abort();
  const given = { name: 'countdown', arguments: { steps: 1000 } };
  await assert.rejects(client.callTool(given, { onprogress, signal: abort.signal }));
  // The cancellation arrives before the next request.
  await client.listTools();
  assert.equal(exports.next_deadline_ms(1), Infinity);
  await client.close();
  await served;
});

// Returns what a pending call ends with. The call has started when `act` is called.
function duringCall(client, act) {
  return client.callTool({ name: 'countdown', arguments: { steps: 1000 } }, { onprogress: act }).then(
    () => assert.fail('the call was answered'), (error) => error);
}

test('the server closes the connection over a port', { skip: missing }, async () => {
  const exports = instantiate();
  const abort = new AbortController();
  const { client, served } = await connectPort('auto', exports, abort.signal);
  const closed = new Promise((resolve) => (client.onclose = resolve));
  assert.match((await duringCall(client, () => abort.abort())).message, /closed/i);
  await closed;
  await served;
  assert.equal(exports.is_over(1), 1);
});

test('the client closes the connection over a port', { skip: missing }, async () => {
  const exports = instantiate();
  const { client, served } = await connectPort('auto', exports);
  assert.match((await duringCall(client, () => client.close())).message, /closed/i);
  await served;
  assert.equal(exports.is_over(1), 1);
});

test('a trap closes the connection over a port', { skip: missing }, async () => {
  const exports = instantiate();
  const handle_timeout = () => { throw new WebAssembly.RuntimeError('unreachable'); };
  const { client, served } = await connectPort('auto', { ...exports, handle_timeout });
  const trap = assert.rejects(served, WebAssembly.RuntimeError);
  await assert.rejects(client.callTool({ name: 'countdown', arguments: { steps: 2 } }), /closed/i);
  await trap;
});

test('a server that cannot serve closes the port', { skip: missing }, async () => {
  const exports = instantiate();
  for (let count = 0; count < 64; count++) assert.notEqual(exports.connect(1, 2, 0), 0);
  const aborted = AbortSignal.abort(new Error('aborted'));
  for (const [given, signal, reason] of [
    [() => exports, undefined, /no room/],
    [() => Promise.reject(new Error('not loaded')), undefined, /not loaded/],
    [instantiate, aborted, /aborted/],
  ]) {
    const { port, served } = servePort(given(), signal);
    const refused = assert.rejects(served, reason);
    await assert.rejects(connect('legacy', exports, new MessagePortTransport(port)), /closed/i);
    await refused;
  }
});

// Posts a value of any kind, and returns the next message.
async function ask(port, value) {
  port.postMessage(value);
  const [answer] = await once(port, 'message');
  return JSON.parse(answer);
}

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

test('what is no JSON is answered over a port', async () => {
  const { port, served } = servePort(instantiate());
  const values = ['{', 'ping', 7n, JSON.parse(ping), [ping], new Map()];
  for (const value of values) {
    const { id, error } = await ask(port, value);
    assert.deepEqual([id, error.code], [undefined, -32700]);
  }
  const pretty = JSON.stringify(JSON.parse(ping), null, 2);
  assert.equal((await ask(port, pretty)).id, 1);
  // The line end of a text is no JSON either.
  assert.equal((await ask(port, ping.replace('ping', 'pi\nng'))).error.code, -32700);
  assert.equal((await ask(port, ping)).id, 1);
  port.close();
  await served;
});

test('a message above the limit is answered over a port', async () => {
  const { port, served } = servePort(instantiate());
  assert.equal((await ask(port, ping.padEnd(MESSAGE_LENGTH_MAX))).id, 1);
  for (const length of [MESSAGE_LENGTH_MAX + 1, 2 ** 24]) {
    const { id, error } = await ask(port, ping.padEnd(length));
    assert.equal(id, undefined);
    assert.match(error.message, /262144/);
  }
  assert.equal((await ask(port, ping)).id, 1);
  port.close();
  await served;
});

test('a flood over a port is answered in order, in little memory', async (t) => {
  const exports = instantiate();
  const { port, served } = servePort(exports);
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: information };
  await ask(port, JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }));
  port.postMessage('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  const call = { name: 'echo', arguments: { text: 'x'.repeat(1000) } };
  const count = 10_000;
  const answers = [];
  const all = new Promise((resolve) =>
    port.on('message', (answer) => answers.push(JSON.parse(answer).id) === count && resolve()));
  for (let id = 1; id <= count; id++) {
    port.postMessage(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: call }));
  }
  await all;
  assert.deepEqual(answers, Array.from({ length: count }, (_, index) => index + 1));
  const bytes = exports.memory.buffer.byteLength;
  t.diagnostic(`memory: ${bytes} bytes with ${count} calls of 1,000 bytes given`);
  assert.ok(bytes <= 8 * 1024 * 1024);
  port.close();
  await served;
});

// --- In a browser ----------------------------------------------------------------------------------

const browsers = ['chromium-headless-shell', 'chromium', 'google-chrome'];
const browser = browsers.find((name) =>
  process.env.PATH.split(delimiter).some((folder) => existsSync(join(folder, name))));
const incapable = missing ||
  (browser || process.env.CI === 'true' ? false : `needs ${browsers.join(' or ')}`);

// The modules of the SDK that run in browsers.
const imports = {
  '@modelcontextprotocol/client': '@modelcontextprotocol/client/dist/index.mjs',
  '@modelcontextprotocol/client/_shims': '@modelcontextprotocol/client/dist/shimsBrowser.mjs',
  '@modelcontextprotocol/core/internal': '@modelcontextprotocol/core/dist/internal.mjs',
  'eventsource': 'eventsource/dist/index.js',
  'eventsource-parser': 'eventsource-parser/dist/index.js',
  'eventsource-parser/stream': 'eventsource-parser/dist/stream.js',
  'pkce-challenge': 'pkce-challenge/dist/index.browser.js',
  'zod/v4': 'zod/v4/index.js',
};
const map = { imports: Object.fromEntries(
  Object.entries(imports).map(([name, path]) => [name, `/node_modules/${path}`])) };
const page = `<!doctype html><script type="importmap">${JSON.stringify(map)}</script>
<script type="module" src="/test-page.mjs"></script>`;

// Serves the page, the SDK, this folder and the module, and passes what the page posts to `report`.
async function pageServer(report) {
  const types = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm' };
  const here = fileURLToPath(new URL('.', import.meta.url));
  const server = createServer(async (request, response) => {
    const { pathname: path } = new URL(request.url, 'http://localhost');
    if (request.method === 'POST') {
      report(JSON.parse(await text(request)));
      return response.end();
    }
    // A copy of the scripts without a module.
    const script = /^(?:\/broken)?(\/[a-z-]+\.mjs)$/.exec(path);
    const source = path === '/target/wasm32-unknown-unknown/release/mcp_sansio_wasm.wasm' ? file
      : path.startsWith('/node_modules/') ? join(packages, path)
      : script && join(here, script[1]);
    if (path !== '/' && !(source && existsSync(source))) return response.writeHead(404).end();
    response.setHeader('Content-Type', types[extname(path)] ?? 'text/html');
    response.end(path === '/' ? page : readFileSync(source));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

test('a page uses the module in a Worker', { skip: incapable }, async () => {
  assert.ok(browser, `no ${browsers.join(' or ')}, and CI=true: install it`);
  let resolve, reject;
  const reported = new Promise((...both) => ([resolve, reject] = both));
  const server = await pageServer(resolve);
  const profile = mkdtempSync(join(tmpdir(), 'mcp-wasm-'));
  const child = spawn(browser, [
    '--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${profile}`,
    '--remote-debugging-port=0', `http://127.0.0.1:${server.address().port}/`,
  ], {
    // A group of its own, because the program may be a script that starts the browser.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const said = text(child.stderr);
  child.once('exit', async () => reject(new Error(`the browser ended: ${await said}`)));
  const patience = setTimeout(() => reject(new Error('the page has reported nothing for 60 s')), 60_000);
  try {
    const { error, ...seen } = await reported;
    assert.equal(error, undefined);
    const use = {
      tools: ['ask_name', 'countdown', 'echo', 'write_note'],
      echo: 'fjörd \u{1f30a}',
      progress: ['1 of 3', '2 of 3', '3 of 3'],
      closed: true,
    };
    assert.deepEqual(seen, {
      modern: { revision: '2026-07-28', ...use },
      legacy: { revision: '2025-11-25', ...use },
      connections: 100,
      broken: 'Connection closed',
    });
  } finally {
    clearTimeout(patience);
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
    // The browser's processes write to the profile until they end. Each holds standard error.
    await said;
    server.close();
    server.closeAllConnections();
    rmSync(profile, { recursive: true });
  }
});

// --- By hand ---------------------------------------------------------------------------------------

// A connection that may violate the protocol, with a clock that stands still.
class Peer {
  constructor(exports = instantiate()) {
    this.exports = exports;
    this.handle = exports.connect(1, 2, 0);
    assert.notEqual(this.handle, 0);
  }

  // Returns whether the bytes were accepted.
  give(bytes, now = 0) {
    const pointer = this.exports.input_buffer(this.handle, bytes.length);
    if (!pointer) return false;
    new Uint8Array(this.exports.memory.buffer, pointer, bytes.length).set(bytes);
    return this.exports.receive(this.handle, bytes.length, now) === 1;
  }

  // Returns the pending messages.
  take() {
    const parts = [];
    for (let length; (length = this.exports.output_length(this.handle)); ) {
      const pointer = this.exports.output_pointer(this.handle);
      parts.push(Buffer.from(new Uint8Array(this.exports.memory.buffer, pointer, length)));
      assert.equal(this.exports.consume(this.handle, length), 1);
    }
    const lines = Buffer.concat(parts).toString().split('\n');
    assert.equal(lines.pop(), '');
    return lines.map((line) => JSON.parse(line));
  }

  say(message, now) {
    const bytes = Buffer.from(JSON.stringify(message) + '\n');
    for (let start = 0; start < bytes.length; start += 65536) {
      assert.ok(this.give(bytes.subarray(start, start + 65536), now));
    }
    return this.take();
  }

  open() {
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: information };
    const [{ result }] = this.say({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
    assert.equal(result.protocolVersion, '2025-06-18');
    this.say({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return this;
  }

  call(id, name, given, now) {
    const params = { name, arguments: given };
    return this.say({ jsonrpc: '2.0', id, method: 'tools/call', params }, now);
  }

  get bytes() {
    return this.exports.memory.buffer.byteLength;
  }

  // Returns whether the connection still works.
  isWell(id = 'well') {
    return this.call(id, 'echo', { text: 'well' })[0]?.result?.content[0].text === 'well';
  }
}

test('messages may arrive byte by byte', () => {
  const peer = new Peer();
  for (const byte of Buffer.from('{"jsonrpc":"2.0","id":7,"method":"ping"}\n')) {
    assert.ok(peer.give(Buffer.of(byte)));
  }
  assert.equal(peer.take()[0].id, 7);
});

test('a handler waits exactly until its deadline', () => {
  const peer = new Peer().open();
  assert.deepEqual(peer.call(1, 'countdown', { steps: 2 }, 1000), []);
  for (const [due, answers] of [[1050, 0], [1100, 1]]) {
    assert.equal(peer.exports.next_deadline_ms(peer.handle), due);
    peer.exports.handle_timeout(peer.handle, due - 1);
    assert.deepEqual(peer.take(), []);
    peer.exports.handle_timeout(peer.handle, due);
    assert.equal(peer.take().length, answers);
  }
  assert.equal(peer.exports.next_deadline_ms(peer.handle), Infinity);
});

test('garbage has no effect', () => {
  const peer = new Peer().open();
  // A fixed sequence of numbers, so that failures are reproducible.
  let state = 1;
  const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) >>> 24;
  for (let round = 0; round < 2000; round++) {
    assert.ok(peer.give(Buffer.from(Array.from({ length: 200 }, random))));
    peer.take();
  }
  for (const line of ['{', '[]', 'null', '{"jsonrpc":"2.0"}', '[[[['.repeat(5000), '{"id":{}}', '\0\ud800']) {
    peer.give(Buffer.from(`\n${line}\n`));
    peer.take();
  }
  assert.ok(peer.isWell());
});

test('an endless line is refused once and needs little memory', (t) => {
  const peer = new Peer().open();
  const before = peer.bytes;
  const part = Buffer.alloc(65536, 'x');
  for (let count = 0; count < 1024; count++) assert.ok(peer.give(part));
  assert.equal(peer.take().filter((message) => message.error).length, 1);
  assert.ok(peer.give(Buffer.of(10)));
  assert.ok(peer.isWell());
  t.diagnostic(`memory: ${before} bytes before 64 MiB in one line, ${peer.bytes} after`);
  assert.ok(peer.bytes <= before + 4 * 1024 * 1024);
});

test('ten thousand calls do not grow the memory', (t) => {
  const peer = new Peer().open();
  for (let id = 1; id <= 100; id++) assert.ok(peer.isWell(id));
  const before = peer.bytes;
  const start = performance.now();
  for (let id = 101; id <= 10_100; id++) assert.ok(peer.isWell(id));
  t.diagnostic(`${((performance.now() - start) / 10).toFixed(1)} µs a call; memory: ${peer.bytes} bytes`);
  assert.equal(peer.bytes, before);
});

test('a host that takes no output cannot give more input', (t) => {
  const peer = new Peer().open();
  const params = { name: 'echo', arguments: { text: 'x'.repeat(1000) } };
  let given = 0;
  const line = () => JSON.stringify({ jsonrpc: '2.0', id: ++given, method: 'tools/call', params }) + '\n';
  while (given < 100_000 && peer.give(Buffer.from(Array.from({ length: 50 }, line).join('')))) {}
  // The last fifty were not accepted.
  assert.ok(given < 10_000);
  t.diagnostic(`memory: ${peer.bytes} bytes with ${given - 50} calls of 1,000 bytes given`);
  assert.ok(peer.bytes <= 8 * 1024 * 1024);
  assert.equal(peer.take().length, given - 50);
  assert.ok(peer.isWell());
});

test('calls beyond the limit of pending calls are refused', () => {
  const peer = new Peer().open();
  let refused = 0;
  for (let id = 1; id <= 1000; id++) {
    refused += peer.call(id, 'countdown', { steps: 1 }).filter((message) => message.error).length;
  }
  assert.equal(refused, 936);
  peer.exports.handle_timeout(peer.handle, 50);
  assert.equal(peer.take().length, 64);
});

test('the longest pending calls stay within the memory bound', (t) => {
  const peer = new Peer().open();
  const padding = 'x'.repeat(262_000);
  for (let id = 1; id <= 1000; id++) peer.call(id, 'countdown', { steps: 1000, padding });
  t.diagnostic(`memory: ${peer.bytes} bytes`);
  assert.ok(peer.bytes <= 24 * 1024 * 1024);
  const { bytes } = peer;
  for (let id = 1; id <= 64; id++) {
    peer.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
  }
  assert.equal(peer.call(1, 'countdown', { steps: 1000, padding }).length, 0);
  assert.equal(peer.bytes, bytes);
});

test('cancelled calls leave nothing behind', () => {
  const peer = new Peer().open();
  const cancel = (requestId) =>
    peer.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
  const round = (id) => {
    peer.call(id, 'countdown', { steps: 1000 });
    assert.deepEqual(cancel(id), []);
  };
  for (let id = 1; id <= 300; id++) round(id);
  const before = peer.bytes;
  for (let id = 301; id <= 5000; id++) round(id);
  assert.equal(peer.bytes, before);
  assert.equal(peer.exports.next_deadline_ms(peer.handle), Infinity);
});

test('invalid calls of the host are refused', () => {
  const peer = new Peer().open();
  const { exports, handle } = peer;
  for (const unknown of [0, handle + 1, 0xffffffff]) {
    assert.equal(exports.input_buffer(unknown, 1), 0);
    assert.equal(exports.receive(unknown, 0, 0), 0);
    assert.equal(exports.output_pointer(unknown), 0);
    assert.equal(exports.output_length(unknown), 0);
    assert.equal(exports.consume(unknown, 0), 0);
    assert.equal(exports.next_deadline_ms(unknown), Infinity);
    assert.equal(exports.handle_timeout(unknown, 0), 0);
    assert.equal(exports.end_of_input(unknown, 0), 0);
    assert.equal(exports.is_over(unknown), 1);
    assert.equal(exports.close(unknown), 0);
  }
  assert.equal(exports.input_buffer(handle, 65537), 0);
  assert.equal(exports.input_buffer(handle, 0xffffffff), 0);
  assert.notEqual(exports.input_buffer(handle, 65536), 0);
  assert.equal(exports.receive(handle, 65537, 0), 0);
  assert.equal(exports.consume(handle, 1), 0);
  for (const time of [NaN, -1, -Infinity, Infinity]) {
    assert.equal(exports.handle_timeout(handle, time), 1);
  }
  assert.ok(peer.isWell());
});

test('the end of the input ends the connection after all output', () => {
  const peer = new Peer().open();
  peer.call(1, 'countdown', { steps: 1 });
  assert.equal(peer.exports.end_of_input(peer.handle, 0), 1);
  assert.equal(peer.give(Buffer.from('x')), false);
  assert.equal(peer.exports.is_over(peer.handle), 0);
  peer.exports.handle_timeout(peer.handle, 50);
  assert.equal(peer.take()[0].id, 1);
  assert.equal(peer.exports.is_over(peer.handle), 1);
});

test('connections are counted, and closed ones leave nothing behind', (t) => {
  const exports = instantiate();
  const round = () => {
    const peers = Array.from({ length: 64 }, () => new Peer(exports).open());
    assert.equal(exports.connect(0, 0, 0), 0);
    for (const peer of peers) assert.ok(peer.isWell());
    for (const { handle } of peers) assert.equal(exports.close(handle), 1);
    assert.equal(exports.close(peers[0].handle), 0);
  };
  round();
  const before = exports.memory.buffer.byteLength;
  for (let count = 0; count < 20; count++) round();
  t.diagnostic(`memory: ${before} bytes for 64 connections`);
  assert.equal(exports.memory.buffer.byteLength, before);
});

test('after a trap everything is refused', (t) => {
  const peer = new Peer().open();
  const { exports, handle } = peer;
  try {
    exports.memory.grow(65536 - peer.bytes / 65536);
  } catch (error) {
    return t.skip(`the memory cannot be used up here: ${error.message}`);
  }
  const part = Buffer.alloc(65536, 'x');
  const fill = () => { for (let count = 0; count < 64; count++) peer.give(part); };
  assert.throws(fill, WebAssembly.RuntimeError);
  assert.equal(exports.connect(0, 0, 0), 0);
  assert.equal(exports.input_buffer(handle, 1), 0);
  assert.equal(exports.receive(handle, 1, 0), 0);
  assert.equal(exports.output_length(handle), 0);
  assert.equal(exports.next_deadline_ms(handle), Infinity);
  assert.equal(exports.is_over(handle), 1);
  assert.equal(exports.close(handle), 0);
});
