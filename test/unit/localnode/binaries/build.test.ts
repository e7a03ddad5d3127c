// What the output of the go command shows of its progress.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { compileProgress, createDownloadProgress } from '../../../../localnode/binaries/build.ts';

function recorded(): { report: (text: string) => void; texts: string[] } {
  const texts: string[] = [];
  return {
    texts,
    report: (text) => {
      texts.push(text);
    },
  };
}

test('counts packages once across compiler calls, and ignores other output', () => {
  const { report, texts } = recorded();
  const onLine = compileProgress(['fmt', 'example.com/a', 'fmt', 'example.com/a/cmd'], report);
  for (const line of ['fmt', '# example.com/a', './a.go:3: a warning', 'fmt', 'example.com/a', 'example.com/a/cmd'])
    onLine(line);
  assert.deepEqual(texts, [
    '3 packages to compile',
    '1 of 3 packages: fmt',
    '1 of 3 packages: fmt',
    '2 of 3 packages: example.com/a',
    '3 of 3 packages: example.com/a/cmd, then linking',
  ]);
});

test('reports that only linking is left if all packages are cached', () => {
  const { report, texts } = recorded();
  compileProgress([], report);
  assert.deepEqual(texts, ['linking']);
});

test('reports downloads', () => {
  const { report, texts } = recorded();
  const onLine = createDownloadProgress(report);
  for (const line of ['go: downloading k8s.io/api v0.35.4', 'k8s.io/api', 'go: downloading go.uber.org/zap v1.27.0'])
    onLine(line);
  assert.deepEqual(texts, ['download 1: k8s.io/api v0.35.4', 'download 2: go.uber.org/zap v1.27.0']);
});
