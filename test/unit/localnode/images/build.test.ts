// What BuildKit's output shows of a build's progress.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { buildProgress } from '../../../../localnode/images/build.ts';

test('reports instructions, and ignores all other output', () => {
  const texts: string[] = [];
  const onLine = buildProgress((text) => {
    texts.push(text);
  });
  for (const line of [
    '#1 [internal] load build definition from Dockerfile',
    '#5 [2/4] RUN apt-get update',
    '#5 0.512 Get:1 http://deb.debian.org',
    '#7 [build 3/7] RUN npm ci',
    '#7 DONE 3.1s',
  ])
    onLine(line);
  assert.deepEqual(texts, ['[2/4] RUN apt-get update', '[build 3/7] RUN npm ci']);
});
