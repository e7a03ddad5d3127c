// What the kubelet prints, and what is read of it.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parseUsage } from '../../../../controller/usage/kubelet.ts';

const text = `# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="app",namespace="moorage-apps",pod="hello-1"} 12.5 1763814000123
container_cpu_usage_seconds_total{container="app",namespace="moorage-apps",pod="young-1"} 0.01 1763814000200
container_cpu_usage_seconds_total{container="app",namespace="elsewhere",pod="hello-1"} 99 1763814000123
container_cpu_usage_seconds_total{container="build",namespace="moorage-apps",pod="hello-1"} 99 1763814000123
container_memory_working_set_bytes{container="app",namespace="moorage-apps",pod="hello-1"} 4.194304e+07 1763814000123
container_cpu_usage_seconds_total{container="service",namespace="moorage-apps",pod="hello-db-1"} 3 1763814000125
container_memory_working_set_bytes{container="service",namespace="moorage-apps",pod="hello-db-1"} 1024 1763814000125
container_memory_working_set_bytes{container="app",namespace="elsewhere",pod="hello-1"} 1 1763814000123
pod_cpu_usage_seconds_total{namespace="moorage-apps",pod="hello-1"} 13 1763814000123
scrape_error 0
`;

test('only the apps of the namespace and their services are read, and only with both figures', () => {
  assert.deepEqual(parseUsage(text, 'moorage-apps'), [
    { pod: 'hello-1', container: 'app', cpuSeconds: 12.5, memoryBytes: 41_943_040, at: 1_763_814_000_123 },
    { pod: 'hello-db-1', container: 'service', cpuSeconds: 3, memoryBytes: 1_024, at: 1_763_814_000_125 },
  ]);
});

test('anything else is nothing', () => {
  assert.deepEqual(parseUsage('<html>', 'moorage-apps'), []);
  assert.deepEqual(parseUsage(`container_cpu_usage_seconds_total{${'a'.repeat(100_000)}`, 'moorage-apps'), []);
});
