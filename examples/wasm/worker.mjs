// The script of a Worker that serves the module: post it a MessagePort for each connection.
import { serve } from './message-port.mjs';

const file = 'target/wasm32-unknown-unknown/release/mcp_sansio_wasm.wasm';
const exports = WebAssembly.instantiateStreaming(fetch(file)).then(({ instance }) => instance.exports);

self.onmessage = ({ ports: [port] }) => serve(exports, port);
