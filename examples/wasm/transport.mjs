// Connections to the server of a module instance, and a transport for the official TypeScript SDK.

/** The maximum length of a message to the server, in bytes: its lines have 256 KiB, with their end. */
export const MESSAGE_LENGTH_MAX = 256 * 1024 - 1;

/** The maximum number of bytes that the module takes at once. */
const INPUT_LENGTH_MAX = 64 * 1024;

/**
 * Returns the text of a message. Throws a RangeError if the server would skip it as too long: such an
 * error of the server names no request, so the sender would wait for its response until a timeout.
 */
export function stringify(message) {
  const text = JSON.stringify(message);
  const { length } = new TextEncoder().encode(text);
  if (length > MESSAGE_LENGTH_MAX) {
    const limit = `the server reads at most ${MESSAGE_LENGTH_MAX}`;
    throw new RangeError(`the message has ${length} bytes, and ${limit}`);
  }
  return text;
}

/**
 * One connection, whose messages are texts. `ontext` is called with each message of the server,
 * `onerror` with the trap that ends the connection, and `onclose` when it has ended.
 */
export class WasmConnection {
  #server; #handle = 0; #timer; #decoder = new TextDecoder(); #text = '';

  constructor(exports) {
    this.#server = exports;
  }

  /** Opens the connection. Throws if the module has too many. */
  open() {
    const seed = crypto.getRandomValues(new Uint32Array(2));
    this.#handle = this.#server.connect(...seed, performance.now());
    if (!this.#handle) throw new Error('the module has no room for another connection');
  }

  /**
   * Passes a message to the server, whose output is delivered later. The server answers a text that is
   * not JSON or too long with an error. Throws if the connection is closed.
   */
  write(text) {
    if (!this.#handle) throw new Error('the connection is closed');
    // A line is one message. In JSON a line end is permitted where a carriage return is.
    const line = new TextEncoder().encode(text.replaceAll('\n', '\r') + '\n');
    this.#advance(() => {
      for (let start = 0; start < line.length; start += INPUT_LENGTH_MAX) {
        if (!this.#give(line.subarray(start, start + INPUT_LENGTH_MAX))) return;
        this.#take();
      }
    });
  }

  /** Drops the connection and all its data. */
  async close() {
    if (!this.#handle) return;
    clearTimeout(this.#timer);
    this.#server.close(this.#handle);
    this.#handle = 0;
    this.onclose?.();
  }

  // Calls the module, then sets a timer for its next deadline.
  #advance(call) {
    try {
      call();
      // After the output, which is deferred too.
      if (this.#server.is_over(this.#handle)) return queueMicrotask(() => this.close());
      clearTimeout(this.#timer);
      const wait = Math.ceil(this.#server.next_deadline_ms(this.#handle) - performance.now());
      if (wait < Infinity) this.#timer = setTimeout(() => this.#wake(), Math.min(wait, 2 ** 31 - 1));
    } catch (trap) {
      this.onerror?.(trap);
      this.close();
    }
  }

  #wake() {
    this.#advance(() => {
      this.#server.handle_timeout(this.#handle, performance.now());
      this.#take();
    });
  }

  // Returns whether the module accepted the bytes. It does unless it has ended, because its output is
  // taken after each call.
  #give(bytes) {
    const pointer = this.#server.input_buffer(this.#handle, bytes.length);
    if (!pointer) return false;
    // Look the memory up each time, because growing it replaces its buffer.
    new Uint8Array(this.#server.memory.buffer, pointer, bytes.length).set(bytes);
    this.#server.receive(this.#handle, bytes.length, performance.now());
    return true;
  }

  // Takes the pending output.
  #take() {
    for (let length; (length = this.#server.output_length(this.#handle)); ) {
      const pointer = this.#server.output_pointer(this.#handle);
      const bytes = new Uint8Array(this.#server.memory.buffer, pointer, length);
      this.#text += this.#decoder.decode(bytes, { stream: true });
      this.#server.consume(this.#handle, length);
    }
    const lines = this.#text.split('\n');
    this.#text = lines.pop();
    // Deferred, so that a response does not arrive before `send` has returned.
    for (const line of lines) queueMicrotask(() => this.ontext?.(line));
  }
}

/** A transport for the official TypeScript SDK, to a module in the same thread. */
export class WasmTransport extends WasmConnection {
  async start() {
    this.open();
  }

  async send(message) {
    this.write(stringify(message));
  }

  ontext(text) {
    this.onmessage?.(JSON.parse(text));
  }
}
