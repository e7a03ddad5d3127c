// The OpenAPI document of all endpoints there are, looked at by two validators of other people.
import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { validate as validateByReadme } from '@readme/openapi-parser';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Registry } from 'prom-client';
import { test } from 'vitest';
import { readAppSettings } from '../../../../../api/apps/start.ts';
import { createApi } from '../../../../../api/create-api.ts';
import { guideSlugs } from '../../../../../api/catalog/guides/source.ts';
import { buildOpenApi } from '../../../../../api/protocols/discovery/openapi.ts';
import { readModelSettings } from '../../../../../api/models/config.ts';
import { createSubmitEndpoints } from '../../../../../api/apps/submit/endpoints.ts';
import { listSlugCandidates } from '../../../../../api/apps/submit/submit-app.ts';
import { GuardedFetcher } from '../../../../../api/tools/fetch/fetcher.ts';
import { readToolSettings } from '../../../../../api/tools/config.ts';
import { catalogSlugs } from '../../../../../crds/names.ts';
import { parseAcceptedRepository } from '../../../../../lib/repository.ts';
import { baseUrl, sampleApps, sampleServices, silent, site } from '../../../../support/api/sample.ts';
import { openApiDocument } from '../../../../support/discovery/client-calls.ts';

/** Everything that an installation answers: every tool and every model; none of them is called. */
const { endpoints } = createApi({
  baseUrl,
  callers: { salt: 'salt', trustedProxies: new BlockList() },
  models: readModelSettings({}),
  tools: readToolSettings({}),
  appCalls: readAppSettings({}),
  apps: { apps: sampleApps().apps, site },
  findModelApp: () => undefined,
  submitting: createSubmitEndpoints(sampleServices()),
  fetcher: new GuardedFetcher(),
  registry: new Registry(),
  log: silent,
  ending: new AbortController().signal,
});
const document = (): Record<string, unknown> => buildOpenApi(endpoints, baseUrl);

test('valid to @seriousme/openapi-schema-validator', async () => {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(document());
  assert.deepEqual([valid, errors], [true, undefined]);
  assert.equal(validator.version, '3.1');
});

test('valid to @readme/openapi-parser', async () => {
  const result = await validateByReadme(document() as unknown as Parameters<typeof validateByReadme>[0]);
  assert.deepEqual(result, { valid: true, warnings: [], specification: 'OpenAPI' });
});

test('both find what is wrong with a broken one', async () => {
  const broken = (): Record<string, unknown> => ({
    ...document(),
    paths: { '/x/{id}': { get: { responses: {}, parameters: 'none' } } },
  });
  assert.equal((await new Validator().validate(broken())).valid, false);
  assert.equal((await validateByReadme(broken() as unknown as Parameters<typeof validateByReadme>[0])).valid, false);
});

test('a pair of numbers is a list of two, which every generator of clients knows', () => {
  const text = JSON.stringify(document());
  assert.ok(!text.includes('"prefixItems"'));
  assert.match(text, /\{"type":"array","items":\{"type":"number"\},"minItems":2,"maxItems":2\}/);
});

test('no field has a list of types other than one with null, which few generators of clients know', () => {
  const lists = [...JSON.stringify(document()).matchAll(/"type":\[("[^\]]*)\]/g)].map(([, types = '']) => types);
  assert.deepEqual(
    lists.filter((types) => types.split(',').filter((type) => type !== '"null"').length > 1),
    [],
  );
});

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema?: unknown }>>;
}
interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly schema: Readonly<Record<string, unknown>> }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}
interface Form {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
}
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

/** Texts of the schemas of all operations, by method and path: of request bodies, or of responses by status. */
function schemas(part: 'request' | 'responses'): [string, string][] {
  return Object.entries(document()['paths'] as Paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { requestBody, responses }]): [string, string][] =>
      part === 'request'
        ? requestBody === undefined
          ? []
          : [[`${method} ${path}`, JSON.stringify(requestBody)]]
        : Object.entries(responses).map(([status, response]) => [
            `${method} ${path} ${status}`,
            JSON.stringify(response),
          ]),
    ),
  );
}

test('responses may get members later, as the page on versions promises, and requests are strict', () => {
  const closed = (part: 'request' | 'responses'): string[] =>
    schemas(part).flatMap(([name, text]) => (text.includes('"additionalProperties":false') ? [name] : []));
  assert.deepEqual(closed('responses'), []);
  const requests = closed('request');
  for (const name of ['post /api/ask', 'post /api/compare', 'post /api/submit', 'post /t/web_search'])
    assert.ok(requests.includes(name), name);
});

test('the slugs of the catalog and of the guides are enumerated, and those of submitted apps have their form', () => {
  const slugOf = (path: string): Readonly<Record<string, unknown>> => {
    const { parameters = [] } = (document()['paths'] as Paths)[path]?.['get'] ?? {};
    return parameters.find(({ name }) => name === 'slug')?.schema ?? {};
  };
  assert.deepEqual(slugOf('/api/agent-guides/{slug}')['enum'], guideSlugs);
  const { type, anyOf } = slugOf('/api/projects/{slug}') as {
    type?: string;
    anyOf?: readonly [{ enum: readonly string[] }, { pattern: string }];
  };
  assert.deepEqual([type, anyOf?.length, anyOf?.[0].enum], ['string', 2, catalogSlugs]);
  const form = new RegExp(anyOf?.[1].pattern ?? '', 'u');
  const submitted = listSlugCandidates(parseAcceptedRepository('https://github.com/Some-One/9-lives.ai'));
  assert.ok(submitted.length > 0);
  for (const slug of [...submitted, ...catalogSlugs]) assert.match(slug, form);
  for (const slug of ['', 'Chat', '9-lives', 'a.b', `a${'b'.repeat(40)}`]) assert.doesNotMatch(slug, form);
});

test('each form of a request body is a whole object, which generators of clients take for a type', () => {
  const forms = (path: string): readonly Form[] => {
    const { requestBody } = (document()['paths'] as Paths)[path]?.['post'] ?? {};
    return (requestBody?.content?.['application/json']?.schema as { oneOf?: readonly Form[] } | undefined)?.oneOf ?? [];
  };
  for (const path of ['/api/ask', '/api/compare']) {
    assert.deepEqual(
      forms(path).map(({ type, properties = {}, required, additionalProperties: others }) => ({
        type,
        said: Object.keys(properties).filter((name) => ['prompt', 'messages', 'system'].includes(name)),
        required,
        others,
      })),
      [
        { type: 'object', said: ['prompt', 'system'], required: ['prompt'], others: false },
        { type: 'object', said: ['messages', 'system'], required: ['messages'], others: false },
      ],
      path,
    );
  }
  for (const [name, text] of schemas('request')) assert.doesNotMatch(text, /[[,]\{"required":\[[^\]]*\]\}/, name);
});

test('every problem of a path at /t declares the headers by which it says what it cost, and no other problem does', () => {
  const { paths } = openApiDocument.parse(document());
  for (const [path, methods] of Object.entries(paths))
    for (const { operationId, responses } of Object.values(methods))
      for (const [status, { headers = {} }] of Object.entries(responses).filter(([code]) => Number(code) >= 400))
        assert.deepEqual(
          ['X-Cost-Usd', 'X-Charged-Usd', 'X-Cost-Source'].filter((name) => name in headers),
          /^[/]t([/]|$)/.test(path) ? ['X-Cost-Usd', 'X-Charged-Usd', 'X-Cost-Source'] : [],
          `${operationId} ${status}`,
        );
});

test('every quota that is reported has the members of one shape, and members of its own only where they are deprecated', () => {
  const common = ['scope', 'currency', 'limit', 'used', 'reserved', 'remaining', 'resets_at'];
  const found: { readonly required: string[]; readonly own: (readonly [string, unknown])[] }[] = [];
  const look = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const { properties } = node as { properties?: { quota?: Record<string, unknown> } };
    const { quota } = properties ?? {};
    if (quota !== undefined && 'properties' in quota) {
      const fields = Object.entries(quota['properties'] as Record<string, { deprecated?: boolean }>);
      found.push({
        required: (quota['required'] as string[]).filter((name) => common.includes(name)),
        own: fields.flatMap(([name, { deprecated }]) => (common.includes(name) ? [] : [[name, deprecated] as const])),
      });
    }
    Object.values(node).forEach(look);
  };
  look(document());
  assert.ok(found.length > 20, `${found.length} places`);
  for (const { required, own } of found) {
    assert.deepEqual(required, common);
    assert.ok(
      own.every(([name, deprecated]) => name === 'left' && deprecated === true),
      JSON.stringify(own),
    );
  }
});
