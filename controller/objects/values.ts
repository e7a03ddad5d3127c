// Reads and writes Kubernetes quantities and timestamps.

/** A quantity in thousandths; `binary`: written with Ki, Mi, Gi or Ti. */
interface Quantity {
  readonly milli: bigint;
  readonly binary: boolean;
}

const decimals = [
  ['T', 10n ** 12n],
  ['G', 10n ** 9n],
  ['M', 10n ** 6n],
  ['k', 10n ** 3n],
] as const;
const binaries = [
  ['Ti', 1n << 40n],
  ['Gi', 1n << 30n],
  ['Mi', 1n << 20n],
  ['Ki', 1n << 10n],
] as const;
const factors: ReadonlyMap<string, bigint> = new Map<string, bigint>([...decimals, ...binaries]);

/** Divides a quantity, in whole Mi or thousandths, never to 0. @throws RangeError for anything but a quantity */
export function divideQuantity(text: string, divisor: bigint): string {
  const { milli, binary } = parse(text);
  const whole = binary ? (milli / divisor / 1000n / (1n << 20n) || 1n) * (1n << 20n) * 1000n : milli / divisor || 1n;
  return format({ milli: whole, binary });
}

/** Whole bytes of a quantity. @throws RangeError for anything but a quantity */
export function parseBytes(text: string): bigint {
  return parse(text).milli / 1000n;
}

/** Thousandths of a quantity, such as of a CPU. @throws RangeError for anything but a quantity */
export function parseMilli(text: string): number {
  return Number(parse(text).milli);
}

/** The smaller of two. */
export function chooseSmaller(a: string, b: string): string {
  return parse(a).milli <= parse(b).milli ? a : b;
}

function parse(text: string): Quantity {
  const match = /^([0-9]+)(?:\.([0-9]+))?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/.exec(text);
  if (match === null) throw new RangeError(`not a quantity: ${text}`);
  const [, whole = '0', fraction = '', suffix = ''] = match;
  const scaled = BigInt(whole + fraction) * (suffix === 'm' ? 1n : 1000n * (factors.get(suffix) ?? 1n));
  const divisor = 10n ** BigInt(fraction.length);
  // Rounded up, as the API server does.
  return { milli: (scaled + divisor - 1n) / divisor, binary: suffix.endsWith('i') };
}

function format({ milli, binary }: Quantity): string {
  if (milli % 1000n !== 0n) return `${milli}m`;
  const value = milli / 1000n;
  const suffixes = binary && value >= 1024n ? binaries : decimals;
  const fitting = value === 0n ? undefined : suffixes.find(([, factor]) => value % factor === 0n);
  return fitting === undefined ? `${value}` : `${value / fitting[1]}${fitting[0]}`;
}

/** Formats a time as Kubernetes does: RFC 3339 in UTC, cut to whole seconds. */
export function formatTimestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
