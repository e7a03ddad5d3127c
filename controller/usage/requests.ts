// What an app's pod should request: what it was seen to use, and a little more, within its limits.
import type { UsageSample } from './kubelet.ts';

/** CPU in thousandths, memory in bytes. */
export interface Amounts {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

/** What a pod used between two samples. */
export interface Use extends Amounts {
  readonly at: number;
}

const mebibyte = 1024 * 1024;
/** An idle app is woken by timers and by probes. */
const least: Amounts = { cpuMilli: 2, memoryBytes: 16 * mebibyte };
/** Room above what was seen. */
const headroom = 1.25;
/** Uses that are looked back on: an app that was busy a moment ago may be so again. */
export const rememberedMs = 5 * 60_000;
/** Requests are lowered only after this long: what an app uses when it starts says little. */
const settledMs = 60_000;
/** Smaller changes are not worth a write. */
const worthwhile = { raise: 1.2, lower: 0.7 };

/** The use between two samples; undefined where the container was started anew between them. */
export function useBetween(before: UsageSample, after: UsageSample): Use | undefined {
  const seconds = (after.at - before.at) / 1000;
  const used = after.cpuSeconds - before.cpuSeconds;
  if (seconds <= 0 || used < 0) return undefined;
  return { at: after.at, cpuMilli: (used / seconds) * 1000, memoryBytes: after.memoryBytes };
}

/** Requests that fit the uses better than the present ones; undefined when these are good enough. */
export function betterRequests(uses: readonly Use[], present: Amounts, limits: Amounts): Amounts | undefined {
  const first = uses[0];
  const last = uses.at(-1);
  if (first === undefined || last === undefined) return undefined;
  const isSettled = last.at - first.at >= settledMs;
  const choose = (name: keyof Amounts, step: number): number => {
    const seen = Math.max(...uses.map((use) => use[name])) * headroom;
    const wanted = Math.min(limits[name], Math.max(least[name], Math.ceil(seen / step) * step));
    if (wanted > present[name] * worthwhile.raise) return wanted;
    return isSettled && wanted < present[name] * worthwhile.lower ? wanted : present[name];
  };
  const better = { cpuMilli: choose('cpuMilli', 1), memoryBytes: choose('memoryBytes', mebibyte) };
  return better.cpuMilli === present.cpuMilli && better.memoryBytes === present.memoryBytes ? undefined : better;
}
