// Compares what is wanted with what is: a stable hash, and "everything wanted is there".
import { createHash } from 'node:crypto';

/**
 * A stable hash (16 hex digits) of any JSON value; the order of keys does not matter, nor do fields that are
 * `undefined`.
 */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonical(value)).digest('hex').slice(0, 16);
}

/** JSON with sorted keys. */
function canonical(value: unknown): string {
  const sorted = (_key: string, inner: unknown): unknown =>
    isRecord(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner;
  return JSON.stringify([value], sorted);
}

/**
 * True when every field of `wanted` is in `actual` with an equal value; arrays must be as long and match item by item.
 * What the API server writes in another way counts as equal: quantities (`1000m` and `1`), and empty values, which it
 * drops.
 */
export function isSubset(wanted: unknown, actual: unknown): boolean {
  if (wanted === undefined) return true;
  if (Array.isArray(wanted)) {
    const items: unknown[] = Array.isArray(actual) ? actual : [];
    return items.length === wanted.length && wanted.every((item, index) => isSubset(item, items[index]));
  }
  if (isRecord(wanted)) {
    const fields = isRecord(actual) ? actual : {};
    return Object.entries(wanted).every(([name, value]) => isSubset(value, fields[name]));
  }
  return wanted === actual || (isEmpty(wanted) && isEmpty(actual)) || sameQuantity(wanted, actual);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '' || value === 0 || value === false;
}

const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:e([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/;
const SCALES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

function sameQuantity(a: unknown, b: unknown): boolean {
  const [x, y] = [quantity(a), quantity(b)];
  return x !== undefined && y !== undefined && Math.abs(x - y) <= 1e-9 * Math.max(Math.abs(x), Math.abs(y));
}

function quantity(value: unknown): number | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  const match = QUANTITY.exec(String(value));
  if (match === null) return undefined;
  const scale = match[2] === undefined ? (SCALES[match[3] ?? ''] ?? 1) : 10 ** Number(match[2]);
  return Number(match[1]) * scale;
}
