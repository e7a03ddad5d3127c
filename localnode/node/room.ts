// How the node's CPU and memory are shared out, so that builds find room however many apps there are.
import { availableParallelism, totalmem } from 'node:os';

const mebibyte = 1024 * 1024;

/** Kept from pods: by the kubelet's systemReserved. */
export const reserved = { cpuMilli: 200, memoryMebibytes: 1024 };
interface Share {
  readonly cpuMilli: number;
  readonly memoryMebibytes: number;
}

/**
 * What the pods of the platform request together (`kubectl describe node`), and some more for updates of them; services
 * behind tools come on top.
 */
const platform = { cpuMilli: 650, memoryMebibytes: 1_792 };
/** What as many builds request as run at once; see values.local.yaml and controller/steps/build/job.ts. */
const builds = { cpuMilli: 3 * 175, memoryMebibytes: 3 * 768 };

/**
 * Chart settings by which apps leave room for builds; none on a machine so small that nothing would be left for apps.
 */
export function appsQuota(
  tools: Share,
  cores: number = availableParallelism(),
  memoryBytes: number = totalmem(),
): readonly string[] {
  const taken = [reserved, platform, builds, tools];
  const cpu = taken.reduce((left, { cpuMilli }) => left - cpuMilli, cores * 1000);
  const memory = taken.reduce(
    (left, { memoryMebibytes }) => left - memoryMebibytes,
    Math.floor(memoryBytes / mebibyte),
  );
  if (cpu < 200 || memory < 1024) return [];
  return [String.raw`apps.quota.requests\.cpu=${cpu}m`, String.raw`apps.quota.requests\.memory=${memory}Mi`];
}
