// The glossary's words: what its right column forbids stands nowhere in sources, tests, charts, manifests and pages.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';

const root = join(import.meta.dirname, '..', '..', '..');

/** What others wrote is not ours to word; schema.sql consists of the migrations, and an applied migration never changes. */
const notOurs = [
  'api/billing/database/schema.sql',
  '**/node_modules/**',
  'localnode/manifests/**',
  'localnode/binaries/*/**',
  'test/corpus/**',
  'docs/measured/**',
  '**/LICENSE',
  'package-lock.json',
];

const files = globSync(
  [
    '*.{md,json,ts,js}',
    'Dockerfile',
    '{api,charts,cli,controller,crds,docs,lib,localnode,manifests,test}/**/*.{ts,js,md,sql,yaml,yml,json,tpl,txt,py,sh,html,toml}',
    '{cli,localnode,manifests,test}/**/Dockerfile',
  ],
  { cwd: root, exclude: notOurs },
).sort();

interface Rule {
  /** What to say instead. */
  readonly say: string;
  readonly not: RegExp;
  /** Where the word may stand, and why. */
  readonly except: Readonly<Record<string, string>>;
}

const glossary = { 'docs/glossary.md': 'the list itself', 'test/unit/docs/words.test.ts': 'this test' };
const migrations = { 'api/billing/database/migrations/': 'an applied migration never changes' };

const rules: readonly Rule[] = [
  {
    say: 'fix',
    not: /\bmend\w*/gi,
    except: { ...glossary, ...migrations, 'CHANGELOG.md': 'records that the field was renamed' },
  },
  {
    say: 'report',
    not: /\b(?:told|tells?|telling)\b/gi,
    except: { ...glossary, ...migrations, 'test/requirements.ts': 'quotes the interface' },
  },
  {
    say: 'ledger',
    not: /\bbooks?\b/gi,
    except: {
      ...glossary,
      ...migrations,
      'api/tools/builtin/lookup-citation/': 'publications that are books',
      'docs/reference/tools.md': 'publications that are books',
      'test/support/ledger/suite.ts': 'quotes an error of a migration',
    },
  },
  { say: 'in progress', not: /\bunder way\b/gi, except: { ...glossary, ...migrations } },
  {
    say: 'tool service, tool registry, backing service or app client',
    not: /\b(?:desk|toolbox|courier)\b|\bbacking\b(?![ -]services?\b)/gi,
    except: {
      ...glossary,
      'api/tools/svg/draw.ts': 'the font Courier',
      'api/catalog/guides/source.ts': 'the interface names a guide so',
      'manifests/guides/toolbox-for-your-agent-zero-install.yaml': 'the interface names a guide so',
      'test/unit/api/catalog/guides/': 'the interface names a guide so',
      'test/integration/guides/': 'the interface names a guide so',
      'docs/reference/http-api.md': 'the interface names a guide so',
    },
  },
  {
    say: 'remove',
    not: /\b(?:take[sn]?|taking|took) (?:(?:it|them|this|that|one) )?away\b/gi,
    except: glossary,
  },
  { say: 'the operator of this installation', not: /\bwhoever runs\b/gi, except: glossary },
  { say: 'limit or maximum', not: /\bmost[A-Z]\w*|\b(?:const|let|readonly) most\b|\bmost\?:/g, except: glossary },
  {
    say: 'a noun as the name of a type',
    not: /^(?:export )?(?:interface|type) \w*(?:Told|Ran|Kept|Given|Known|Made|Sent|Found|Taken|[a-z]ked|[a-z]ted|[a-z]led|[a-z]sed)\b/gm,
    except: glossary,
  },
];

for (const { say, not, except } of rules) {
  test(`say ${say}`, () => {
    const hits = files
      .filter((file) => !Object.keys(except).some((path) => file.startsWith(path)))
      .flatMap((file) =>
        `${file}\n${readFileSync(join(root, file), 'utf8')}`
          .split('\n')
          .flatMap((line, index) =>
            [...line.matchAll(not)].map(([word]) => `${index === 0 ? 'name of ' : ''}${file}:${index}: ${word}`),
          ),
      );
    assert.deepEqual(hits, []);
  });

  test(`each exception of "${say}" is needed`, () => {
    for (const path of Object.keys(except)) {
      const excepted = files.filter((file) => file.startsWith(path));
      assert.ok(excepted.length > 0, path);
      if (path in glossary) continue;
      assert.ok(
        excepted.some((file) => readFileSync(join(root, file), 'utf8').search(not) >= 0),
        `${path} is free of it: remove the exception`,
      );
    }
  });
}
