// Every step of every guide, executed as its record writes it: curl by a shell, tools/call by the official MCP client.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { execa } from 'execa';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { readGuides } from '../../../api/catalog/guides/load.ts';
import { guideRecord } from '../../../api/catalog/guides/endpoints.ts';
import { type GuideSlug, guideSlugs } from '../../../api/catalog/guides/source.ts';
import { startGuideSite, type GuideSite } from '../../support/catalog/guides.ts';

const sources = new Map(readGuides().map((guide) => [guide.slug, guide]));
let site: GuideSite;
let client: Client;
let folder: string;

beforeAll(async () => {
  site = await startGuideSite();
  client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${site.baseUrl}/mcp`)));
  await client.listTools();
  folder = mkdtempSync(join(tmpdir(), 'moorage-guides-'));
  // The command stays as it is written; its status goes to the error stream.
  writeFileSync(join(folder, '.curlrc'), 'silent\nshow-error\nwrite-out = "%{stderr}%{http_code}"\n');
});
afterAll(async () => {
  await client.close();
  await site.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** What stands in for a step without the service or the cluster that it needs: the problem, and whom it names. */
const absent: Partial<Record<GuideSlug, Readonly<Record<number, readonly [slug: string, names: RegExp]>>>> = {
  'translate-paper-pdf-without-breaking-equations': {
    0: ['service-off', /tools\.pdftranslator\.enabled/],
    1: ['unknown-job', /job/],
    2: ['unknown-job', /job/],
  },
  'best-model-for-research-agent': {
    1: ['service-off', /tools\.searxng\.enabled/],
    2: ['service-off', /tools\.searxng\.enabled/],
  },
  'run-open-source-ai-apps-without-install': {
    2: ['no-cluster', /npm run up/],
    3: ['no-cluster', /npm run up/],
  },
  'transcribe-audio-url-via-mcp': {
    0: ['service-off', /tools\.speech\.enabled/],
    1: ['service-off', /tools\.speech\.enabled/],
  },
};

interface StepAnswer {
  readonly status: number;
  readonly body: Buffer;
}

async function runCurl(command: string, variables: Record<string, string>): Promise<StepAnswer> {
  const { stdout, stderr } = await execa('bash', ['-c', command], {
    cwd: folder,
    encoding: 'buffer',
    extendEnv: false,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: folder,
      CURL_HOME: folder,
      ROUTER_KEY: 'sk-demo-12345678',
      ...variables,
    },
  });
  const file = / -o ([a-z0-9.-]+) /.exec(command)?.[1];
  const path = file === undefined ? undefined : join(folder, file);
  const body = path !== undefined && existsSync(path) ? readFileSync(path) : Buffer.from(stdout);
  return { status: Number(Buffer.from(stderr).toString()), body };
}

const mcpParameters = z.strictObject({ name: z.string(), arguments: z.record(z.string(), z.unknown()) });
const failure = z.looseObject({ problem: z.looseObject({ status: z.int() }) });

async function runMcp(command: string): Promise<StepAnswer> {
  const [, url, parameters = ''] = /^MCP tools\/call at (\S+) with (.*)$/.exec(command) ?? [];
  assert.equal(url, `${site.baseUrl}/mcp`);
  const { isError, structuredContent } = await client.callTool(mcpParameters.parse(JSON.parse(parameters)));
  if (isError !== true) return { status: 200, body: Buffer.from(JSON.stringify(structuredContent)) };
  const { problem } = failure.parse(structuredContent);
  return { status: problem.status, body: Buffer.from(JSON.stringify(problem)) };
}

const problemBody = z.looseObject({ type: z.string(), detail: z.string() });

/** A value of an answer, such as `results.0.model`. */
function valueAt(path: string, answers: readonly unknown[]): string | undefined {
  const found = answers.map((answer) =>
    path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], answer),
  );
  return z
    .string()
    .optional()
    .parse(found.findLast((value) => value !== undefined));
}

/** The first bytes of the files that steps save. */
const magic: Readonly<Record<string, RegExp>> = { pptx: /^PK/, svg: /^<\?xml|^<svg/ };

/** A line of a record without its words. */
function commandIn(line: string): string {
  return /: ((?:curl |MCP tools\/call at ).*)$/s.exec(line)?.[1] ?? '';
}

async function execute(command: string, variables: Record<string, string> = {}): Promise<StepAnswer> {
  const run = (): Promise<StepAnswer> => (command.startsWith('curl') ? runCurl(command, variables) : runMcp(command));
  let answer = await run();
  // As the problem says: try again while the machine is too busy.
  while (answer.status === 503 && answer.body.includes('/problems/tool-busy')) answer = await run();
  return answer;
}

/** Checks an answer, and returns it where it is JSON. */
function checkAnswer(line: string, { status, body }: StepAnswer): unknown {
  assert.equal(status, 200, `${line}\n${body.toString()}`);
  const kind = / -o [a-z-]+\.([a-z]+) /.exec(line)?.[1];
  if (kind === undefined) return JSON.parse(body.toString());
  assert.match(body.subarray(0, 8).toString('latin1'), magic[kind] ?? /^$/);
  return undefined;
}

function checkProblem(line: string, { body }: StepAnswer, [slug, names]: readonly [string, RegExp]): void {
  const { type, detail } = problemBody.parse(JSON.parse(body.toString()));
  assert.equal(type, `${site.baseUrl}/problems/${slug}`, `${line}\n${detail}`);
  assert.match(detail, names);
}

test.each(guideSlugs)('%s: each step can be executed as written', async (slug) => {
  const record = guideRecord.parse(await (await fetch(`${site.baseUrl}/api/agent-guides/${slug}`)).json());
  const steps = sources.get(slug)?.steps ?? [];
  assert.equal(record.steps.length, steps.length);
  const answers: unknown[] = [];
  for (const [index, line] of record.steps.entries()) {
    const uses = Object.entries(steps[index]?.uses ?? {});
    const variables = uses.map(([name, path]) => [name, valueAt(path, answers) ?? 'A'.repeat(22)] as const);
    const answer = await execute(commandIn(line), Object.fromEntries(variables));
    const problem = absent[slug]?.[index];
    if (problem === undefined) answers.push(checkAnswer(line, answer));
    else checkProblem(line, answer, problem);
  }
});

test('steps give the results that their text promises', async () => {
  const call = async (slug: string, index: number): Promise<unknown> => {
    const line = (await site.api.catalog.guides.getRecord(slug))?.steps[index] ?? '';
    const { body } = await execute(commandIn(line));
    return JSON.parse(body.toString());
  };
  const shape = z.looseObject({ result: z.looseObject({}) });
  const slugOf = (start: string): string => guideSlugs.find((slug) => slug.startsWith(start)) ?? '';
  const result = async (start: string, index: number): Promise<unknown> =>
    shape.parse(await call(slugOf(start), index)).result;
  const conforms = z.looseObject({ valid: z.boolean(), errors: z.array(z.looseObject({ path: z.string() })) });
  assert.equal(conforms.parse(await result('reliable-json', 1)).valid, true);
  assert.deepEqual(
    conforms.parse(await result('reliable-json', 2)).errors.map(({ path }) => path),
    ['/year'],
  );
  assert.equal(z.looseObject({ value: z.unknown() }).parse(await result('toolbox', 1)).value, '18446744073709551616');
  const { matches } = z.looseObject({ matches: z.array(z.unknown()) }).parse(await result('best-llm', 1));
  assert.ok(matches.length > 0);
  const compared = z.looseObject({ results: z.array(z.looseObject({ model: z.string(), cost_usd: z.number() })) });
  assert.equal(compared.parse(await call(slugOf('compare-llm'), 1)).results.length, 3);
});
