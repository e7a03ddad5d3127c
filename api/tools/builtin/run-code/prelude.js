// Runs inside the sandbox before the code: console, and how values become text. Takes what it needs now, since the code
// may change it.
// eslint-disable-next-line @typescript-eslint/no-unused-expressions -- the value of this script is the function
(write) => {
  const { stringify } = JSON;
  const { join } = Array.prototype;
  const NativeError = Error,
    NativeString = String,
    NativeBigInt = BigInt,
    call = Function.prototype.call.bind(Function.prototype.call);
  const toBigText = (value) => call(NativeBigInt.prototype.toString, value);
  const json = (value) => stringify(value, (_, part) => (typeof part === 'bigint' ? toBigText(part) : part));
  const show = (value) => {
    if (typeof value === 'string') return value;
    if (value instanceof NativeError) return `${value.name}: ${value.message}`;
    if (typeof value === 'object' && value !== null) {
      try {
        return json(value) ?? NativeString(value);
      } catch {
        return NativeString(value);
      }
    }
    return NativeString(value);
  };
  let open = true;
  const log =
    (level) =>
    (...values) => {
      if (!open) return;
      const texts = [];
      for (let i = 0; i < values.length; i += 1) texts[i] = show(values[i]);
      open = write(level, call(join, texts, ' '));
    };
  globalThis.console = {
    log: log('log'),
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
    debug: log('debug'),
  };
  return (value) => (typeof value === 'bigint' ? stringify(toBigText(value)) : json(value));
};
