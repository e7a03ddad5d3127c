// Random numbers from a seed: the same seed gives the same instance on every machine.
import { createHash } from 'node:crypto';

export interface Random {
  /** A whole number, both bounds included. */
  whole(low: number, high: number): number;
  pick<Value>(values: readonly Value[]): Value;
  /** So many different ones, in random order. */
  sample<Value>(values: readonly Value[], count: number): Value[];
  shuffled<Value>(values: readonly Value[]): Value[];
}

/** SplitMix32 over a hash of the seed. */
export function randomFrom(seed: string): Random {
  let state = createHash('sha256').update(seed).digest().readUInt32LE(0);
  const next = (): number => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4_294_967_296;
  };
  const whole = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  const shuffled = <Value>(values: readonly Value[]): Value[] => {
    const left = [...values];
    return Array.from({ length: left.length }, () => left.splice(whole(0, left.length - 1), 1)).flat();
  };
  return {
    whole,
    shuffled,
    pick: (values) => values[whole(0, values.length - 1)] ?? refuseEmpty(),
    sample: (values, count) => shuffled(values).slice(0, count),
  };
}

function refuseEmpty(): never {
  throw new RangeError('there is nothing to pick from');
}
