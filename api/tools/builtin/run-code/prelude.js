// Runs inside the sandbox before the code: console, and the conversion of values to JSON and text. Captures the
// built-ins that it needs, since the code may change them.
// eslint-disable-next-line @typescript-eslint/no-unused-expressions -- the value of this script is the function
(write) => {
  const { stringify } = JSON;
  const { isArray, from } = Array;
  const { keys } = Object;
  const { isView } = ArrayBuffer;
  const { isFinite } = Number;
  const NativeError = Error,
    NativeString = String,
    NativeMap = Map,
    NativeSet = Set,
    NativeDate = Date,
    NativeRegExp = RegExp,
    NativePromise = Promise,
    NativeBuffer = ArrayBuffer,
    Bytes = Uint8Array,
    View = DataView,
    call = Function.prototype.call.bind(Function.prototype.call);
  const { toString: bigToString } = BigInt.prototype;
  const { toString: patternToString } = RegExp.prototype;
  const { toISOString } = Date.prototype;
  const { forEach: eachOfMap } = Map.prototype;
  const { forEach: eachOfSet } = Set.prototype;
  const { join, push } = Array.prototype;
  const { toString: kindOf } = Object.prototype;
  const { slice } = String.prototype;
  const maxShown = 100;

  const pairs = (map) => {
    const list = [];
    call(eachOfMap, map, (value, key) => call(push, list, [key, value]));
    return list;
  };
  const members = (set) => {
    const list = [];
    call(eachOfSet, set, (value) => call(push, list, value));
    return list;
  };
  const elements = (view) =>
    view instanceof View ? from(new Bytes(view.buffer, view.byteOffset, view.byteLength)) : from(view);

  /** Converts values without a JSON form to one that JSON has. */
  const convert = (value) => {
    if (value instanceof NativeMap) return pairs(value);
    if (value instanceof NativeSet) return members(value);
    if (isView(value)) return elements(value);
    if (value instanceof NativeBuffer) return from(new Bytes(value));
    if (value instanceof NativeRegExp) return call(patternToString, value);
    if (value instanceof NativeError) return { name: value.name, message: value.message, ...value };
    return value;
  };

  const toJson = (root) => {
    // The enclosing values, and the converted form of each.
    const [originals, forms] = [[], []];
    return stringify(root, function replace(_key, value) {
      if (typeof value === 'bigint') return call(bigToString, value);
      if (typeof value !== 'object' || value === null) return value;
      while (forms.length > 0 && forms[forms.length - 1] !== this) {
        forms.length -= 1;
        originals.length -= 1;
      }
      for (let i = 0; i < originals.length; i += 1) if (originals[i] === value) return '[Circular]';
      const form = convert(value);
      if (typeof form === 'object' && form !== null) {
        originals[originals.length] = value;
        forms[forms.length] = form;
      }
      return form;
    });
  };

  const shortOf = (value) => {
    if (typeof value === 'string') return stringify(value);
    if (typeof value === 'bigint') return `${call(bigToString, value)}n`;
    if (typeof value === 'function') return `[Function ${value.name || '(anonymous)'}]`;
    if (typeof value === 'number' && value === 0) return 1 / value < 0 ? '-0' : '0';
    return NativeString(value);
  };
  const list = (values, above) => {
    const texts = [];
    for (let i = 0; i < values.length; i += 1) texts[i] = show(values[i], above);
    return call(join, texts, ',');
  };
  const fields = (value, above) => {
    const texts = [];
    const names = keys(value);
    for (let i = 0; i < names.length; i += 1) texts[i] = `${stringify(names[i])}:${show(value[names[i]], above)}`;
    return `{${call(join, texts, ',')}}`;
  };
  const ofMap = (map, above) => {
    const texts = [];
    const entries = pairs(map);
    for (let i = 0; i < entries.length; i += 1)
      texts[i] = `${show(entries[i][0], above)} => ${show(entries[i][1], above)}`;
    return `Map(${entries.length}) {${call(join, texts, ', ')}}`;
  };
  const ofBytes = (value, above) => {
    const [name, all] = isView(value)
      ? [call(slice, call(kindOf, value), 8, -1), elements(value)]
      : ['ArrayBuffer', from(new Bytes(value))];
    return `${name}(${all.length}) [${list(all, above)}]`;
  };
  const ofLeaf = (value) => {
    if (value instanceof NativeDate) return isFinite(+value) ? call(toISOString, value) : 'Invalid Date';
    if (value instanceof NativeRegExp) return call(patternToString, value);
    if (value instanceof NativeError) return `${value.name}: ${value.message}`;
    return value instanceof NativePromise ? '[Promise]' : undefined;
  };
  const ofObject = (value, above) => {
    if (isArray(value)) return `[${list(value, above)}]`;
    if (value instanceof NativeMap) return ofMap(value, above);
    if (value instanceof NativeSet) return `Set(${members(value).length}) {${list(members(value), above)}}`;
    if (isView(value) || value instanceof NativeBuffer) return ofBytes(value, above);
    const leaf = ofLeaf(value);
    if (leaf !== undefined) return leaf;
    if (typeof value.toJSON === 'function') return show(value.toJSON(), above);
    return fields(value, above);
  };
  const show = (value, above) => {
    if (typeof value !== 'object' || value === null) return shortOf(value);
    for (let i = 0; i < above.length; i += 1) if (above[i] === value) return '[Circular]';
    if (above.length >= maxShown) return '[Nested too deeply]';
    const below = [];
    for (let i = 0; i < above.length; i += 1) below[i] = above[i];
    below[above.length] = value;
    return ofObject(value, below);
  };
  const toText = (value) => {
    if (typeof value === 'string') return value;
    try {
      return show(value, []);
    } catch {
      return '[cannot be shown]';
    }
  };

  let open = true;
  const log =
    (level) =>
    (...values) => {
      if (!open) return;
      const texts = [];
      for (let i = 0; i < values.length; i += 1) texts[i] = toText(values[i]);
      open = write(level, call(join, texts, ' '));
    };
  globalThis.console = {
    log: log('log'),
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
    debug: log('debug'),
  };
  return {
    toJson: (value) => (typeof value === 'bigint' ? stringify(shortOf(value).slice(0, -1)) : toJson(value)),
    toText,
  };
};
