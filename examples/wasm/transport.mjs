// A transport for the official TypeScript SDK on top of a module instance's exports.
export class WasmTransport {
  #server; #handle; #timer; #decoder = new TextDecoder(); #text = '';

  constructor(exports) {
    this.#server = exports;
  }

  async start() {
    this.#handle = this.#server.connect(...crypto.getRandomValues(new Uint32Array(2)), performance.now());
    if (!this.#handle) throw new Error('the module has no room for another connection');
  }

  async send(message) {
    const bytes = new TextEncoder().encode(JSON.stringify(message) + '\n');
    try {
      for (let start = 0; start < bytes.length; start += 65536) {
        this.#give(bytes.subarray(start, start + 65536));
        this.#take();
      }
    } catch (trap) {
      this.close();
      throw trap;
    }
  }

  async close() {
    clearTimeout(this.#timer);
    if (!this.#handle) return;
    this.#server.close(this.#handle);
    this.#handle = 0;
    this.onclose?.();
  }

  #give(bytes) {
    const pointer = this.#server.input_buffer(this.#handle, bytes.length);
    if (!pointer) throw new Error('the connection is over');
    // Look the memory up each time, because growing it replaces its buffer.
    new Uint8Array(this.#server.memory.buffer, pointer, bytes.length).set(bytes);
    this.#server.receive(this.#handle, bytes.length, performance.now());
  }

  // Delivers the pending output, then sets a timer for the next deadline.
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
    for (const line of lines) queueMicrotask(() => this.onmessage?.(JSON.parse(line)));
    if (this.#server.is_over(this.#handle)) return void this.close();
    clearTimeout(this.#timer);
    const wait = Math.ceil(this.#server.next_deadline_ms(this.#handle) - performance.now());
    if (wait < Infinity) this.#timer = setTimeout(() => this.#wake(), Math.min(wait, 2 ** 31 - 1));
  }

  #wake() {
    try {
      this.#server.handle_timeout(this.#handle, performance.now());
      this.#take();
    } catch (trap) {
      this.onerror?.(trap);
      this.close();
    }
  }
}
