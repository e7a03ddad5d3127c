// Which secrets are checked to be real in form, and where samples stand. Those here are made at run time, so that this
// repository carries none.
import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, randomBytes } from 'node:crypto';
import { test } from 'vitest';
import {
  isCheckedSecret,
  isSamplePath,
} from '../../../../../../../controller/pipeline/review/rules/secrets/formats.ts';

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const alphanumeric = `${letters}0123456789`;

/** Random, but without a word that a placeholder has. */
function random(count: number, signs = alphanumeric): string {
  const found = [...randomBytes(count)].map((byte) => signs[byte % signs.length]).join('');
  return /test|fake|demo|a{3}|0{3}|1{3}|xx/i.test(found) ? random(count, signs) : found;
}

const upper = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const now = Date.parse('2026-01-01') / 1000;

function token(payload: object, secret: string): string {
  const parts = [{ alg: 'HS256', typ: 'JWT' }, payload].map((each) =>
    Buffer.from(JSON.stringify(each)).toString('base64url'),
  );
  return `${parts.join('.')}.${createHmac('sha256', secret).update(parts.join('.')).digest('base64url')}`;
}

function privateKey(): string {
  return generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();
}

test('reports a private key whose base64 happens to contain a short word of samples', () => {
  const [first = '', second = '', ...others] = privateKey().split('\n');
  for (const word of ['your', 'fake', 'xxxx', 'dummy'])
    assert.ok(
      isCheckedSecret('private-key', [first, `${word}${second.slice(word.length)}`, ...others].join('\n'), 0),
      word,
    );
});

test('reports tokens in the format of their kind as errors', () => {
  const real: readonly (readonly [string, string])[] = [
    ['aws-access-token', `AKIA${random(16, upper)}`],
    ['github-pat', `ghp_${random(36)}`],
    ['openai-api-key', `sk-${random(20)}T3BlbkFJ${random(20)}`],
    ['slack-bot-token', `xoxb-${random(11, '23456789')}-${random(24)}`],
    ['gcp-api-key', `AIza${random(35)}`],
    ['huggingface-access-token', `hf_${random(34, letters)}`],
    ['stripe-access-token', `sk_live_${random(24)}`],
    ['jwt', token({ sub: '7', exp: now + 1000 }, random(32))],
    ['private-key', privateKey()],
  ];
  for (const [rule, secret] of real) assert.ok(isCheckedSecret(rule, secret, now), rule);
});

test('ignores placeholders, samples, low entropy and kinds without a format', () => {
  const samples: readonly (readonly [string, string])[] = [
    ['aws-access-token', 'AKIAIOSFODNN7EXAMPLE'],
    ['aws-access-token', `AKIA${'AB'.repeat(8)}`],
    ['openai-api-key', 'sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'],
    ['openai-api-key', 'sk-your-openai-key-goes-here-0000'],
    ['github-pat', 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'],
    ['gcp-api-key', `AIza${'1234567'.repeat(5)}`],
    ['stripe-access-token', `sk_test_${random(24)}`],
    ['jwt', token({ sub: '7', exp: now + 1000 }, 'secret')],
    ['jwt', token({ sub: '7', exp: now - 1000 }, random(32))],
    ['jwt', token({ sub: '1234567890', name: 'John Doe' }, random(32))],
    ['private-key', '-----BEGIN PRIVATE KEY-----\nMIIE...your key here...\n-----END PRIVATE KEY-----'],
    ['generic-api-key', random(40)],
    ['hashicorp-tf-password', random(20)],
  ];
  for (const [rule, secret] of samples) assert.ok(!isCheckedSecret(rule, secret, now), `${rule} ${secret}`);
});

test('treats manuals, tests, examples, compose files and defaults as sample paths, but not code', () => {
  for (const path of [
    'docs/use.py',
    'README.md',
    'a/tests/x.ts',
    'src/a.test.ts',
    'test_a.py',
    'pkg/a_test.go',
    'nb/x.ipynb',
    'docker-compose.yml',
    'deploy/compose.prod.yaml',
    '.env.example',
    '.env.test',
    'env.sample',
    'config.py',
    'src/default.json',
    '.github/workflows/a.yml',
    'examples/a.py',
  ])
    assert.ok(isSamplePath(path), path);
  for (const path of [
    'settings.py',
    'src/app.ts',
    '.env',
    'server/config_private.py',
    'contest/a.py',
    'latest.js',
    'src/documents/a.ts',
  ])
    assert.ok(!isSamplePath(path), path);
});
