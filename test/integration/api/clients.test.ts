// Clients that other people's programs generate from the OpenAPI document call every operation once: in TypeScript
// and Go, where the compiler judges the calls, and in Python, which decodes each answer.
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { findGo } from '../../../localnode/binaries/toolchain.ts';
import { clientCalls, openApiDocument, type ClientCall } from '../../support/discovery/client-calls.ts';
import { goRuntime, installForGo, installForPython, installForTypeScript } from '../../support/discovery/generators.ts';
import { startWholeApi, type WholeApi } from '../../support/discovery/whole-api.ts';
import { runExclusively } from '../../support/exclusively.ts';

const support = join(import.meta.dirname, '..', '..', 'support', 'discovery');
const folder = mkdtempSync(join(tmpdir(), 'moorage-clients-'));
const document = join(folder, 'openapi.json');
let api: WholeApi;
let calls: ClientCall[];

beforeAll(async () => {
  api = await startWholeApi();
  const text = await (await fetch(`${api.url}/openapi.json`)).text();
  writeFileSync(document, text);
  const examples = new Map(api.tools.map(({ name, example }) => [name, example]));
  calls = clientCalls(openApiDocument.parse(JSON.parse(text)), examples);
  writeFileSync(join(folder, 'calls.json'), JSON.stringify(calls));
});
afterAll(async () => {
  await api.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** What HTTP and CORS need, which no description lists. */
const ofHttp =
  /^(access-control-[a-z-]+|connection|content-(encoding|language|length|type)|date|keep-alive|transfer-encoding|vary|x-content-type-options)$/;
const result = z.object({ id: z.string(), status: z.number(), headers: z.array(z.string()) });

/** A part of a request, if there is anything in it. */
function given(name: string, fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.keys(fields).length === 0 ? {} : { [name]: fields };
}

/** A program of one call a line, each checked by the compiler. */
function program(): string {
  const lines = calls.map(({ id, method, path, params, query, body }) => {
    const init = JSON.stringify({
      params: { ...given('path', params), ...given('query', query) },
      ...(body === undefined ? {} : { body }),
    });
    return `add(${JSON.stringify(id)}, await client.${method}(${JSON.stringify(path)}, { parseAs: 'text', ${init.slice(1)}));`;
  });
  return `import createClient from 'openapi-fetch';
import type { paths } from './schema.js';
const client = createClient<paths>({ baseUrl: process.argv[2] ?? '' });
const results: { id: string; status: number; headers: string[] }[] = [];
function add(id: string, { response }: { response: Response }): void {
  results.push({ id, status: response.status, headers: [...response.headers.keys()] });
}
${lines.join('\n')}
console.log(JSON.stringify(results));
`;
}

test(
  'TypeScript (openapi-typescript, openapi-fetch): every call compiles, and returns what is described',
  { timeout: 600_000 },
  async (context) => {
    const packages = join(await runExclusively(installForTypeScript), 'node_modules');
    symlinkSync(packages, join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
    writeFileSync(join(folder, 'calls.ts'), program());
    await execa(process.execPath, [
      join(packages, 'openapi-typescript', 'bin', 'cli.js'),
      document,
      '-o',
      join(folder, 'schema.d.ts'),
    ]);
    const compiler = join(packages, 'typescript', 'bin', 'tsc');
    const options = [
      '--strict',
      '--noEmit',
      '--skipLibCheck',
      '--target',
      'es2022',
      '--module',
      'nodenext',
      'calls.ts',
    ];
    writeFileSync(join(folder, 'process.d.ts'), 'declare const process: { argv: string[] };');
    const compiled = await execa(process.execPath, [compiler, ...options, 'process.d.ts'], {
      cwd: folder,
      reject: false,
    });
    assert.equal(compiled.exitCode, 0, compiled.stdout.slice(0, 4_000));
    const ran = await execa(process.execPath, ['calls.ts', api.url], { cwd: folder });
    const results = z.array(result).parse(JSON.parse(ran.stdout));
    assert.deepEqual(
      results.map(({ id }) => id),
      calls.map(({ id }) => id),
    );
    const undeclared = results.flatMap(({ id, status, headers }) => {
      const declared = calls.find((call) => call.id === id)?.headers[String(status)];
      if (declared === undefined) return [`${id}: status ${status}`];
      return headers
        .filter((name) => !ofHttp.test(name) && !declared.includes(name))
        .map((name) => `${id} ${status}: ${name}`);
    });
    assert.deepEqual(undeclared, []);
    assert.deepEqual(
      results.filter(({ status }) => status === 500),
      [],
    );
    await context.annotate(statuses(results));
  },
);

test(
  'Python (openapi-python-client): every operation is generated, called and decoded',
  { timeout: 600_000 },
  async (context) => {
    const programs = await runExclusively(installForPython);
    const made = join(folder, 'moorage_client');
    await execa(
      join(programs, 'openapi-python-client'),
      ['generate', '--path', document, '--output-path', made, '--meta', 'none'],
      {
        env: { PATH: `${programs}:${process.env['PATH'] ?? ''}` },
      },
    );
    const ran = await execa(
      join(programs, 'python'),
      [join(support, 'client.py'), made, api.url, join(folder, 'calls.json')],
      { env: { PYTHONDONTWRITEBYTECODE: '1' } },
    );
    const results = z
      .array(
        z.object({
          id: z.string(),
          status: z.number(),
          left: z.array(z.string()),
          untyped: z.boolean(),
          parsed: z.boolean(),
        }),
      )
      .parse(JSON.parse(ran.stdout));
    assert.deepEqual(
      results.map(({ id }) => id),
      calls.map(({ id }) => id),
    );
    for (const { id, status } of results)
      assert.ok(calls.find((call) => call.id === id)?.headers[String(status)] !== undefined, `${id}: status ${status}`);
    assert.deepEqual(
      results.filter((one) => one.untyped).map(({ id }) => id),
      [],
    );
    await context.annotate(
      `${statuses(results)}; fields of a query that this generator does not know: ${results.flatMap(({ id, left }) => left.map((name) => `${id}.${name}`)).join(', ')}`,
    );
  },
);

test('Go (oapi-codegen): every operation is generated, compiled and called', { timeout: 900_000 }, async (context) => {
  const go = await findGo();
  const generator = await runExclusively(() => installForGo(go));
  const module = join(folder, 'go');
  mkdirSync(join(module, 'client'), { recursive: true });
  writeFileSync(join(module, 'go.mod'), 'module clients\n\ngo 1.26\n');
  copyFileSync(join(support, 'client.go'), join(module, 'main.go'));
  await execa(generator, [
    '-generate',
    'types,client',
    '-package',
    'client',
    '-o',
    join(module, 'client', 'client.go'),
    document,
  ]);
  const environment = { cwd: module, env: { GOFLAGS: '-mod=mod' } };
  await execa(go, ['get', goRuntime], environment);
  // Without the path of this folder in it, what was compiled before is found in Go's cache.
  await execa(go, ['build', '-trimpath', '-o', 'calls', '.'], environment);
  const ran = await execa(join(module, 'calls'), [api.url, join(folder, 'calls.json')]);
  const results = z
    .array(z.object({ id: z.string(), status: z.number(), untyped: z.boolean() }))
    .parse(JSON.parse(ran.stdout));
  assert.deepEqual(
    results.map(({ id }) => id),
    calls.map(({ id }) => id),
  );
  for (const { id, status } of results)
    assert.ok(calls.find((call) => call.id === id)?.headers[String(status)] !== undefined, `${id}: status ${status}`);
  const untyped = results.filter((one) => one.untyped).map(({ id }) => id);
  assert.deepEqual(untyped, []);
  await context.annotate(statuses(results));
});

function statuses(results: readonly { readonly status: number }[]): string {
  const counts = Object.entries(Object.groupBy(results, ({ status }) => status));
  return `${results.length} operations: ${counts.map(([status, all]) => `${all?.length ?? 0} × ${status}`).join(', ')}`;
}
