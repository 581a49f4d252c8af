// node trace_processor.mjs FOLDER REQUESTS
//
// Runs Perfetto's trace processor, the wasm of its viewer in FOLDER, on the RPC requests of the file
// REQUESTS, and writes its replies to stdout. The viewer runs it in a worker of a browser; this gives
// it as much of one as it asks for.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';

const [folder, requests] = process.argv.slice(2);
const say = (...words) => process.stderr.write(words.join(' ') + '\n');

function content(url) {
  const bytes = fs.readFileSync(path.join(folder, path.basename(String(url))));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
}

class Request {
  open(method, url) {
    this.url = url;
  }
  setRequestHeader() {}
  send() {
    this.status = 200;
    this.response = content(this.url);
  }
}

const worker = {
  WorkerGlobalScope: Object,
  XMLHttpRequest: Request,
  location: {href: 'https://trace.invalid/engine_bundle.js'},
  console: {log: say, warn: say, error: say, info: say, debug: say},
  fetch: async (url) => ({ok: true, arrayBuffer: async () => content(url)}),
  URL, TextDecoder, TextEncoder, performance, setTimeout, clearTimeout, crypto: globalThis.crypto,
};
worker.self = worker;
vm.createContext(worker);
vm.runInContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'), worker);
const port = {postMessage: (reply) => fs.writeSync(1, Buffer.from(reply))};
worker.onmessage({data: port});
worker.given = fs.readFileSync(requests);
const bytes = vm.runInContext('new Uint8Array(given)', worker);
// The engine begins in a promise of its own; after it, it answers at once.
setTimeout(() => port.onmessage({data: bytes}), 0);
