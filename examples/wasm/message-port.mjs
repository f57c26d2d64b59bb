// MCP over a MessagePort, between a page and a Worker, two threads or two frames.
//
// Each message of a port is the text of one JSON-RPC message. `null` says that its sender has closed the
// connection: not every browser reports that in another way. A port carries one connection.
import { WasmConnection, stringify } from './transport.mjs';

/** A transport for the official TypeScript SDK, to the server at the other port of a channel. */
export class MessagePortTransport {
  #port; #isClosed = false;

  constructor(port) {
    this.#port = port;
  }

  async start() {
    listen(this.#port, (text) => this.#receive(text), () => this.close());
  }

  async send(message) {
    const text = stringify(message);
    if (this.#isClosed) throw new Error('the connection is closed');
    this.#port.postMessage(text);
  }

  async close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    hangUp(this.#port);
    this.onclose?.();
  }

  #receive(text) {
    let message;
    try {
      message = JSON.parse(text);
    } catch (error) {
      return this.onerror?.(error);
    }
    this.onmessage?.(message);
  }
}

/**
 * Serves the connection at a port with the `exports` of a module instance, or a promise of them, until
 * either side closes it; `signal` closes this side. Always closes the port. Throws if the module cannot
 * serve: it is not loaded, has too many connections, or has trapped.
 */
export async function serve(exports, port, signal) {
  let close;
  try {
    const server = new WasmConnection(await exports);
    signal?.throwIfAborted();
    server.open();
    await new Promise((resolve, reject) => {
      close = () => server.close();
      server.ontext = (text) => port.postMessage(text);
      server.onclose = resolve;
      server.onerror = reject;
      signal?.addEventListener('abort', close);
      // The module answers a value that is no text like a text that is no JSON, such as its type.
      listen(port, (value) => server.write(typeof value === 'string' ? value : typeof value), close);
    });
  } finally {
    signal?.removeEventListener('abort', close);
    hangUp(port);
  }
}

// Calls `onvalue` with each value that is posted to a port, and `onend` when the other side has closed
// it, or has ended where that is reported, as in Node.js.
function listen(port, onvalue, onend) {
  port.addEventListener('close', onend);
  port.onmessageerror = () => onvalue(undefined);
  port.onmessage = ({ data }) => (data === null ? onend() : onvalue(data));
}

function hangUp(port) {
  port.postMessage(null);
  port.close();
}
