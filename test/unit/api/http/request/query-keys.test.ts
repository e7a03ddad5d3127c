// Keys in URLs are refused, whatever router made them; texts that only begin like one pass.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { rejectKeysInQuery } from '../../../../../api/http/request/query-keys.ts';
import { Problem } from '../../../../../lib/problem.ts';

const lower = 'abcdefghijklmnopqrstuvwxyz';
const alphanumeric = `${lower}${lower.toUpperCase()}0123456789`;
const textOf = (alphabet: string, minLength: number, maxLength = minLength): fc.Arbitrary<string> =>
  fc
    .array(fc.noBias(fc.integer({ min: 0, max: alphabet.length - 1 })), { minLength, maxLength })
    .map((indices) => indices.map((index) => alphabet[index]).join(''));

/** Characters as a generator of keys draws them: from bytes, each as likely as any other. */
const forms: Readonly<Record<string, fc.Arbitrary<string>>> = {
  'OpenAI, 48 letters and digits': textOf(alphanumeric, 48).map((secret) => `sk-${secret}`),
  'OpenAI, of a project': textOf(`${alphanumeric}_-`, 48, 156).map((secret) => `sk-proj-${secret}`),
  'OpenAI, of a service account': textOf(`${alphanumeric}_-`, 48, 156).map((secret) => `sk-svcacct-${secret}`),
  'Anthropic form': textOf(`${alphanumeric}_-`, 93).map((secret) => `sk-ant-api03-${secret}`),
  'OpenRouter, 64 hexadecimal digits': textOf('0123456789abcdef', 64).map((secret) => `sk-or-v1-${secret}`),
  'DeepSeek form, 32 hexadecimal digits': textOf('0123456789abcdef', 32).map((secret) => `sk-${secret}`),
  'LiteLLM, 16 bytes in base64url': fc
    .array(fc.noBias(fc.integer({ min: 0, max: 255 })), { minLength: 16, maxLength: 16 })
    .map((bytes) => `sk-${Buffer.from(bytes).toString('base64url')}`),
};

/** How a key gets into a URL. */
const around: readonly ((key: string) => string)[] = [
  (key) => key,
  (key) => ` ${key}`,
  (key) => `Bearer ${key}`,
  (key) => `my key is ${key}, use it`,
  (key) => `https://host.test/?k=${key}&x=1`,
];

function refused(value: string | string[], name = 'q'): boolean {
  try {
    rejectKeysInQuery({ [name]: value });
    return false;
  } catch (error) {
    assert.ok(error instanceof Problem && error.type.slug === 'key-in-query');
    for (const one of [value].flat()) assert.ok(one.length < 20 || !error.message.includes(one), 'repeats no key');
    return true;
  }
}

/** Of short keys with dashes in them 3 in 100,000 look like words, and pass: more than three of 2,000 are a fault. */
const mayPass = new Map([['LiteLLM, 16 bytes in base64url', 3]]);

for (const [form, keys] of Object.entries(forms)) {
  test(`refused: ${form}`, () => {
    const written = fc.sample(fc.tuple(keys, fc.constantFrom(...around)), 2_000);
    const passed = written.filter(([key, write]) => !refused(write(key)) || !refused(['a', write(key)]));
    assert.ok(passed.length <= (mayPass.get(form) ?? 0), passed.map(([key]) => key).join(' '));
  });
}

test('words that begin with sk- pass, however many', () => {
  const part = fc.oneof(
    textOf(lower, 1, 14),
    textOf(lower, 2, 10).map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`),
    textOf('0123456789', 1, 8),
    textOf(lower.toUpperCase(), 1, 6),
  );
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 8 }), (words) => !refused(`sk-${words.join('-')}`)),
    { numRuns: 2_000 },
  );
});

for (const text of [
  'SK-II',
  'sk-SK',
  'sk-notes',
  'sk-',
  'sk-learn',
  'SK-II facial treatment essence 230ml',
  'sk-learn-RandomForestClassifier-v2',
  'sk-hynix-quarterly-results-2026-Q3',
  'https://scikit.test/sk-linear-model-logistic-regression',
  'task-0f8e1d2c-3b4a-5968-7786-95a4b3c2d1e0',
  'disk-9aB3xQ7LmN2pR5tV8wYz1c',
  'sk-XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX',
  'sk-… is how keys begin',
])
  test(`passes: ${text}`, () => {
    assert.equal(refused(text), false);
  });

for (const name of ['api_key', 'apiKey', 'access-token', 'Authorization', 'bearer'])
  test(`a parameter that is named for a key is refused: ${name}`, () => {
    assert.equal(refused('anything', name), true);
  });
