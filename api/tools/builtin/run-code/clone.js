// Runs inside the sandbox before the code: structuredClone.
// eslint-disable-next-line @typescript-eslint/no-unused-expressions -- the value of this script is the function
({ give, errors }) => {
  const refuse = (value) => {
    const error = new Error(`${String(value).slice(0, 80)} could not be cloned.`);
    Object.defineProperty(error, 'name', { value: 'DataCloneError', configurable: true });
    throw error;
  };
  const ofError = (value) => {
    const copy = new (errors[value.name] ?? Error)(value.message);
    give(copy, { name: value.name, stack: value.stack });
    return copy;
  };
  /** What has no parts that may lead back to it. */
  const ofLeaf = (value, cloned) => {
    if (value instanceof Date) return new Date(+value);
    if (value instanceof RegExp) return new RegExp(value.source, value.flags);
    if (value instanceof ArrayBuffer) return value.slice(0);
    if (ArrayBuffer.isView(value))
      return new value.constructor(cloned(value.buffer), value.byteOffset, value.length ?? value.byteLength);
    if (value instanceof Number || value instanceof String || value instanceof Boolean) return Object(value.valueOf());
    if (value instanceof Error) return ofError(value);
    return undefined;
  };
  const emptyOf = (value) => {
    if (value instanceof Map) return new Map();
    if (value instanceof Set) return new Set();
    return Array.isArray(value) ? new Array(value.length) : {};
  };
  const fill = (copy, value, cloned) => {
    if (value instanceof Map) for (const [key, part] of [...value]) copy.set(cloned(key), cloned(part));
    else if (value instanceof Set) for (const part of [...value]) copy.add(cloned(part));
    else for (const key of Object.keys(value)) copy[key] = cloned(value[key]);
  };
  const clone = (value, seen) => {
    const cloned = (part) => clone(part, seen);
    if (typeof value === 'function' || typeof value === 'symbol') refuse(value);
    if (typeof value !== 'object' || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const leaf = ofLeaf(value, cloned);
    const copy = leaf ?? emptyOf(value);
    seen.set(value, copy);
    if (leaf === undefined) fill(copy, value, cloned);
    return copy;
  };
  give(globalThis, { structuredClone: (value) => clone(value, new Map()) });
};
