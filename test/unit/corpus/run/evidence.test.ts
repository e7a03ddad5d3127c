// Which words of a log are evidence of the network, and which are not.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { networkEvidence } from '../../../corpus/run/evidence.ts';

const cases: readonly (readonly [string, string])[] = [
  ['curl: (6) Could not resolve host: github.com', 'github.com'],
  ['npm error request to x failed, reason: getaddrinfo EAI_AGAIN objects.example.org', 'objects.example.org'],
  ['go: dial tcp: lookup sum.example.org on 10.0.0.1:53: no such host', 'sum.example.org'],
  ["urllib3: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded", 'huggingface.co'],
  [
    "requests: Max retries exceeded with url: /a (Caused by NewConnectionError(\"HTTPSConnection(host='openaipublic.blob.example.net', port=443)",
    'openaipublic.blob.example.net',
  ],
  ['fatal: unable to access: Failed to connect to gitlab.com port 443 after 3 ms: Connection refused', 'gitlab.com'],
  ['Error: connect ETIMEDOUT while reading https://fonts.example.com/a.woff', 'fonts.example.com'],
  ['error: https://download.example.org/whl/cu128/torch/: dns error: failed to lookup', 'download.example.org'],
];

test.each(cases)('%s', (line, what) => {
  assert.deepEqual(networkEvidence(['fine', line]), { kind: 'host', what, line });
});

test('a base image is named before a host that its resolver names', () => {
  const lines = [
    'ERROR: dial tcp: lookup registry.example.org: no such host',
    'ERROR: failed to solve: denoland/deno:2: failed to resolve source metadata for docker.io/denoland/deno:2: not found',
  ];
  const found = networkEvidence(lines);
  assert.deepEqual([found?.kind, found?.what], ['base image', 'denoland/deno:2']);
});

test('what is wrong with the app is no evidence', () => {
  const lines = [
    "ModuleNotFoundError: No module named 'flask'",
    'npm error 404 Not Found - no such package',
    'connect ECONNREFUSED 127.0.0.1:5432',
    'Error: connect ECONNREFUSED ::1:6379',
    'failed to compile src/lookup.ts',
    `${'x'.repeat(100_000)} Could not resolve host: late.example.org`,
  ];
  assert.equal(networkEvidence(lines), undefined);
});
