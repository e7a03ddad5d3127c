// What is taken of a repository's .gitleaks.toml: allowlists, within bounds, and nothing else.
import assert from 'node:assert/strict';
import { parse } from 'smol-toml';
import { test } from 'vitest';
import { buildAllowlistConfig } from '../../../../../../../controller/pipeline/review/rules/secrets/secrets.ts';

const found = new Set(['jwt']);
const read = (text: string): unknown => {
  const config = buildAllowlistConfig(text, found);
  return config === undefined ? undefined : JSON.parse(JSON.stringify(parse(config)));
};

test('accepts allowlists in both forms, but not rules, extended paths and unknown rules', () => {
  const config = read(
    `title = "x"
[extend]
path = "/etc/passwd"
disabledRules = ["jwt"]
[allowlist]
regexes = ['a"b', "c"]
regexTarget = "line"
commits = ["x"]
[[rules]]
id = "mine"
regex = ".*"
[[allowlists]]
targetRules = ["mine"]
paths = ["x"]
[[allowlists]]
targetRules = ["mine", "jwt"]
condition = "and"
paths = ["x"]
stopwords = ["w"]
`,
  );
  assert.deepEqual(config, {
    extend: { useDefault: true },
    allowlists: [
      { regexes: ['a"b', 'c'], regexTarget: 'line' },
      { paths: ['x'], stopwords: ['w'], targetRules: ['jwt'], condition: 'AND' },
    ],
  });
});

test('accepts nothing if there are none, and no more than the limits', () => {
  for (const text of [
    '',
    'not toml [',
    '[extend]\nuseDefault = false',
    '[allowlist]\npaths = 3',
    '[allowlist]\npaths = [""]',
  ])
    assert.equal(read(text), undefined, text);
  assert.equal(read(`[allowlist]\nregexes = ["${'a'.repeat(2_000)}"]`), undefined);
  const many = buildAllowlistConfig(`[allowlist]\nregexes = [${'"a",'.repeat(5_000)}]`, found) ?? '';
  assert.equal(many.match(/"a"/g)?.length, 200);
});
