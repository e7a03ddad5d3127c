// Settings reach the operator whole or the commit is rejected, and a hostile report costs the operator nothing.
import assert from 'node:assert/strict';
import { brotliCompressSync } from 'node:zlib';
import { test } from 'vitest';
import type { ReportedSettings } from '../../../../crds/app-manifest.ts';
import { readManifest } from '../../../../controller/pipeline/app-manifest.ts';
import { reviewResult } from '../../../../controller/pipeline/contract.ts';
import { formatTermination } from '../../../../controller/pipeline/message.ts';
import {
  findExcess,
  isReportable,
  maximumPackedBytes,
  packSettings,
  transportedSettings,
} from '../../../../controller/pipeline/settings-report.ts';
import { createMemoryTree } from '../../../../controller/pipeline/tree.ts';
import { makeNoise } from '../../../support/pipeline/sample.ts';

/** A compose project that sets many variables in each of its components. */
function createSettings(components: number, variables: number, toValue: (index: number) => string): ReportedSettings {
  return {
    components: Array.from({ length: components }, (_, at) => ({
      name: `service-${at}`,
      kind: at === 0 ? ('web' as const) : ('worker' as const),
      path: `services/service-${at}`,
      command: ['uvicorn', 'main:app', '--port', '$PORT'],
      env: Array.from({ length: variables }, (__, index) => ({
        name: `SETTING_${index}`,
        value: toValue(at * variables + index),
      })),
    })),
  };
}

test('reports eight components with twenty variables each', () => {
  const settings = createSettings(8, 20, (index) => `http://service-${index % 8}:${8000 + index}/v1/${index}`);
  assert.ok(JSON.stringify(settings).length > 8_000);
  assert.ok(isReportable(settings));
  const plan = { strategy: 'dockerfile' as const, reason: 'r'.repeat(390), port: 8080 };
  const report = reviewResult.parse(JSON.parse(formatTermination({ findings: [], plan, settings })));
  assert.deepEqual(report, { findings: [], plan, settings });
});

test('names the values that take the most room when settings do not fit', () => {
  const settings = createSettings(8, 20, (index) => makeNoise(index === 25 ? 64 : 30, index));
  const { rule, message = '', fix = '' } = findExcess(settings) ?? {};
  assert.equal(rule, 'settings/too-large');
  assert.match(message, /take \d+ bytes when they are compressed, and the report of a review has room for 3000/);
  assert.match(message, /longest are components\[service-1\]\.env\[SETTING_5\] \(64 bytes\), /);
  assert.match(fix, /run\.env/);
  assert.match(
    findExcess({ ...settings, platform: { file: 'compose.yaml, Procfile', fields: [] } })?.file ?? '',
    /^compose\.yaml$/,
  );
});

test('accepts a moorage.yaml that is long as JSON but short when compressed, up to what the operator reads', () => {
  const write = (length: number): string => `run:\n  env: [{name: A, value: "${'x'.repeat(length)}"}]\n`;
  const read = (length: number): string | undefined =>
    readManifest(createMemoryTree({ 'moorage.yaml': write(length) })).findings[0]?.message;
  assert.equal(read(8_000), undefined);
  assert.match(read(12_000) ?? '', /take 12\d+ bytes as JSON, and the operator reads at most 12000\..*run\.env\[A\]/);
});

test('reads the plain settings that an earlier pipeline reports', () => {
  const settings = { run: { port: 3000 } };
  assert.deepEqual(transportedSettings.parse(settings), settings);
  assert.deepEqual(transportedSettings.parse(packSettings(settings)), settings);
});

test('refuses a packed text that unpacks to more than the status holds, whatever is in it', () => {
  const pack = (text: string): string => brotliCompressSync(Buffer.from(text)).toString('base64url');
  // What comes after the settings would not matter if it were unpacked.
  const bomb = (spaces: number): string => pack(`{"run":{"port":3000}}${' '.repeat(spaces)}`);
  assert.ok(bomb(1_000_000).length < maximumPackedBytes);
  assert.deepEqual(transportedSettings.parse(bomb(1_000)), { run: { port: 3000 } });
  assert.equal(transportedSettings.safeParse(bomb(1_000_000)).success, false);
  for (const text of ['', 'AAAA', '{}', pack('{'), pack('[]'), pack('{"run":{"secrets":[]}}'), `${pack('{}')}=`])
    assert.equal(transportedSettings.safeParse(text).success, false, text);
});

test('refuses settings that defaults make longer than the status holds', () => {
  const create = (length: number): object => ({
    components: Array.from({ length: 8 }, (_, index) => ({
      name: `c${index}`,
      ...(index === 0 ? {} : { kind: 'worker' }),
      volumes: ['a', 'b'].map((name) => ({ name, path: `/${name}` })),
      env: index === 0 ? [{ name: 'A', value: 'x'.repeat(length) }] : [],
    })),
  });
  const longest = 16_000 - JSON.stringify(create(0)).length;
  assert.equal(JSON.stringify(create(longest)).length, 16_000);
  assert.equal(transportedSettings.safeParse(create(longest - 1_000)).success, true);
  assert.equal(transportedSettings.safeParse(create(longest)).success, false);
});
