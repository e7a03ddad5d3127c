// Runs inside the sandbox before the code: the globals around the language that need no network and no files. platform.ts
// answers `ask(name, JSON)` with JSON: it has the locale tables and the URL parser.
// eslint-disable-next-line @typescript-eslint/no-unused-expressions -- the value of this script is the function
(ask) => {
  const { stringify, parse } = JSON;
  const { defineProperty } = Object;
  const NativeDate = Date;
  const errors = { RangeError, TypeError, SyntaxError };
  const host = (name, ...words) => {
    const { error, value } = parse(ask(name, stringify(words)));
    if (error === undefined) return value;
    const thrown = new (errors[error.name] ?? Error)(error.message);
    if (errors[error.name] === undefined) defineProperty(thrown, 'name', { value: error.name, configurable: true });
    throw thrown;
  };
  const give = (target, values) => {
    for (const [name, value] of Object.entries(values))
      defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
  };

  // Addresses.
  class URLSearchParams {
    #pairs = [];
    #changed = () => undefined;
    constructor(from = '', changed = undefined) {
      if (typeof from === 'object' && from !== null)
        this.#pairs = (typeof from[Symbol.iterator] === 'function' ? [...from] : Object.entries(from)).map(
          ([name, value]) => [`${name}`, `${value}`],
        );
      else this.#pairs = host('params.parse', `${from}`);
      if (changed !== undefined) this.#changed = changed;
    }
    #set(pairs) {
      this.#pairs = pairs;
      this.#changed(this.toString());
    }
    get size() {
      return this.#pairs.length;
    }
    append(name, value) {
      this.#set([...this.#pairs, [`${name}`, `${value}`]]);
    }
    delete(name, value) {
      this.#set(this.#pairs.filter((pair) => pair[0] !== `${name}` || (value !== undefined && pair[1] !== `${value}`)));
    }
    get(name) {
      return this.#pairs.find((pair) => pair[0] === `${name}`)?.[1] ?? null;
    }
    getAll(name) {
      return this.#pairs.filter((pair) => pair[0] === `${name}`).map((pair) => pair[1]);
    }
    has(name, value) {
      return this.#pairs.some((pair) => pair[0] === `${name}` && (value === undefined || pair[1] === `${value}`));
    }
    set(name, value) {
      const at = this.#pairs.findIndex((pair) => pair[0] === `${name}`);
      if (at < 0) this.append(name, value);
      else
        this.#set(
          this.#pairs.flatMap((pair, index) =>
            pair[0] !== `${name}` ? [pair] : index === at ? [[pair[0], `${value}`]] : [],
          ),
        );
    }
    sort() {
      this.#set(this.#pairs.toSorted((one, other) => (one[0] < other[0] ? -1 : one[0] > other[0] ? 1 : 0)));
    }
    forEach(use, self) {
      for (const [name, value] of this.#pairs) use.call(self, value, name, this);
    }
    *entries() {
      for (const [name, value] of this.#pairs) yield [name, value];
    }
    *keys() {
      for (const [name] of this.#pairs) yield name;
    }
    *values() {
      for (const [, value] of this.#pairs) yield value;
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      return host('params.text', this.#pairs);
    }
    toJSON() {
      return this.toString();
    }
  }
  const urlParts = ['protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'hash'];
  class URL {
    #parts;
    #params;
    constructor(address, base) {
      this.#parts = host('url.parse', `${address}`, base === undefined ? null : `${base}`);
      this.#read();
    }
    static canParse(address, base) {
      return URL.parse(address, base) !== null;
    }
    static parse(address, base) {
      try {
        return new URL(address, base);
      } catch {
        return null;
      }
    }
    static {
      for (const name of urlParts)
        defineProperty(URL.prototype, name, {
          get() {
            return this.#parts[name];
          },
          set(value) {
            this.#parts = host('url.set', this.#parts.href, name, `${value}`);
          },
          enumerable: true,
          configurable: true,
        });
    }
    /** Created on use only: URL and parameters refer to each other, and such a cycle stays in memory longer. */
    #read() {
      this.#params = undefined;
    }
    get href() {
      return this.#parts.href;
    }
    set href(value) {
      this.#parts = host('url.parse', `${value}`, null);
      this.#read();
    }
    get search() {
      return this.#parts.search;
    }
    set search(value) {
      this.#parts = host('url.set', this.#parts.href, 'search', `${value}`);
      this.#read();
    }
    get origin() {
      return this.#parts.origin;
    }
    get searchParams() {
      return (this.#params ??= new URLSearchParams(this.#parts.search, (text) => {
        this.#parts = host('url.set', this.#parts.href, 'search', text);
      }));
    }
    toString() {
      return this.#parts.href;
    }
    toJSON() {
      return this.#parts.href;
    }
  }

  // Bytes and text.
  const binary = (bytes) => {
    let text = '';
    for (let i = 0; i < bytes.length; i += 1) text += String.fromCharCode(bytes[i]);
    return text;
  };
  const viewOf = (given) =>
    given === undefined
      ? new Uint8Array(0)
      : ArrayBuffer.isView(given)
        ? new Uint8Array(given.buffer, given.byteOffset, given.byteLength)
        : new Uint8Array(given);
  class TextEncoder {
    get encoding() {
      return 'utf-8';
    }
    encode(text = '') {
      const bytes = unescape(encodeURIComponent(`${text}`.toWellFormed()));
      return Uint8Array.from(bytes, (character) => character.charCodeAt(0));
    }
    encodeInto(text, into) {
      let [read, written] = [0, 0];
      for (const character of `${text}`) {
        const bytes = this.encode(character);
        if (written + bytes.length > into.length) break;
        into.set(bytes, written);
        read += character.length;
        written += bytes.length;
      }
      return { read, written };
    }
  }
  class TextDecoder {
    #label;
    #options;
    constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
      this.#options = { fatal: Boolean(fatal), ignoreBOM: Boolean(ignoreBOM) };
      this.#label = host('decoder', `${label}`);
    }
    get encoding() {
      return this.#label;
    }
    get fatal() {
      return this.#options.fatal;
    }
    get ignoreBOM() {
      return this.#options.ignoreBOM;
    }
    decode(bytes, { stream = false } = {}) {
      if (stream) throw new TypeError('TextDecoder: the option stream is not available here; decode all bytes at once');
      return host('decode', this.#label, this.#options, binary(viewOf(bytes)));
    }
  }

  // structuredClone.
  const refuseClone = (value) => {
    const error = new Error(`${String(value).slice(0, 80)} could not be cloned.`);
    Object.defineProperty(error, 'name', { value: 'DataCloneError', configurable: true });
    throw error;
  };
  const cloneError = (value) => {
    const copy = new (errors[value.name] ?? Error)(value.message);
    give(copy, { name: value.name, stack: value.stack });
    return copy;
  };
  /** Clones a value whose parts cannot lead back to it. */
  const cloneLeaf = (value, cloned) => {
    if (value instanceof Date) return new Date(+value);
    if (value instanceof RegExp) return new RegExp(value.source, value.flags);
    if (value instanceof ArrayBuffer) return value.slice(0);
    if (ArrayBuffer.isView(value))
      return new value.constructor(cloned(value.buffer), value.byteOffset, value.length ?? value.byteLength);
    if (value instanceof Number || value instanceof String || value instanceof Boolean) return Object(value.valueOf());
    if (value instanceof Error) return cloneError(value);
    return undefined;
  };
  const createEmpty = (value) => {
    if (value instanceof Map) return new Map();
    if (value instanceof Set) return new Set();
    return Array.isArray(value) ? new Array(value.length) : {};
  };
  const fillClone = (copy, value, cloned) => {
    if (value instanceof Map) for (const [key, part] of [...value]) copy.set(cloned(key), cloned(part));
    else if (value instanceof Set) for (const part of [...value]) copy.add(cloned(part));
    else for (const key of Object.keys(value)) copy[key] = cloned(value[key]);
  };
  const clone = (value, seen) => {
    const cloned = (part) => clone(part, seen);
    if (typeof value === 'function' || typeof value === 'symbol') refuseClone(value);
    if (typeof value !== 'object' || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const leaf = cloneLeaf(value, cloned);
    const copy = leaf ?? createEmpty(value);
    seen.set(value, copy);
    if (leaf === undefined) fillClone(copy, value, cloned);
    return copy;
  };

  // Timers. The worker calls due timers, since it can wait for them.
  const timers = new Map();
  let lastTimer = 0;
  const since = NativeDate.now();
  const { now } = NativeDate;
  const start = (every, use, ms, words) => {
    if (typeof use !== 'function') throw new TypeError('The first argument must be a function');
    const wait = Math.max(1, Number(ms) || 0);
    timers.set((lastTimer += 1), { due: now() + wait, every: every ? wait : undefined, use, words });
    return lastTimer;
  };
  const next = () => {
    let [first, least] = [undefined, undefined];
    for (const [id, { due }] of timers) if (least === undefined || due < least) [first, least] = [id, due];
    return first;
  };

  give(globalThis, {
    URL,
    URLSearchParams,
    TextEncoder,
    TextDecoder,
    structuredClone: (value) => clone(value, new Map()),
    atob: (text) => host('atob', `${text}`),
    btoa: (text) => host('btoa', `${text}`),
    queueMicrotask: (use) => void Promise.resolve().then(() => use()),
    setTimeout: (use, ms, ...words) => start(false, use, ms, words),
    setInterval: (use, ms, ...words) => start(true, use, ms, words),
    setImmediate: (use, ...words) => start(false, use, 0, words),
    clearTimeout: (id) => void timers.delete(id),
    clearInterval: (id) => void timers.delete(id),
    clearImmediate: (id) => void timers.delete(id),
    performance: { now: () => now() - since, timeOrigin: since },
    crypto: {
      randomUUID: () => host('uuid'),
      getRandomValues: (view) => {
        new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(host('random', view.byteLength));
        return view;
      },
    },
  });
  return {
    host,
    give,
    errors,
    /** Milliseconds until the next timer is due; undefined if there is none. */
    nextDue: () => {
      const id = next();
      return id === undefined ? undefined : Math.max(0, timers.get(id).due - now());
    },
    fire: () => {
      const id = next();
      if (id === undefined) return;
      const timer = timers.get(id);
      if (timer.every === undefined) timers.delete(id);
      else timer.due = now() + timer.every;
      timer.use(...timer.words);
    },
  };
};
