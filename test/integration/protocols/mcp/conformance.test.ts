// The official conformance suite of MCP against /mcp of a running server, in every revision; tools that it expects are
// made for it.
// Which scenarios hold, and which do not apply, is data: mcp-scenarios.ts. A scenario that the suite gains is missed
// there at once.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { migratedDatabase } from '../../../support/ledger/snapshot.ts';
import { startServer, type PublicServer } from '../../../../api/http/server.ts';
import { Problem } from '../../../../lib/problem.ts';
import { toolFailed } from '../../../../api/tools/problems.ts';
import { defineTool, type Artifact } from '../../../../api/tools/tool.ts';
import { silent } from '../../../support/api/sample.ts';
import { sampleToolApp, type ToolSample } from '../../../support/tools/sample.ts';
import { scenarios } from '../../../support/mcp/scenarios.ts';

const suite = join(
  import.meta.dirname,
  '..',
  '..',
  '..',
  '..',
  'node_modules',
  '@modelcontextprotocol',
  'conformance',
  'dist',
  'index.js',
);
const folder = mkdtempSync(join(tmpdir(), 'moorage-conformance-'));

const png: Artifact = {
  bytes: Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  ),
  mediaType: 'image/png',
  fileName: 'dot.png',
};
const wav: Artifact = { bytes: new Uint8Array(44), mediaType: 'audio/wav', fileName: 'silence.wav' };
const text: Artifact = { bytes: Buffer.from('Text of a file.'), mediaType: 'text/plain', fileName: 'file.txt' };

function fixture(
  name: string,
  run: (report: (done: number) => void) => Artifact | undefined,
): ReturnType<typeof defineTool> {
  return defineTool({
    name,
    title: name,
    description: 'Of the conformance suite.',
    price: '0',
    openWorld: false,
    input: z.strictObject({}),
    output: z.object({ ok: z.boolean() }),
    example: {},
    artifacts: ['image/png', 'audio/wav', 'text/plain'],
    run: (_input, { report }) => {
      const artifact = run((done) => {
        report({ done, message: 'in progress' });
      });
      return Promise.resolve({ result: { ok: true }, ...(artifact === undefined ? {} : { artifact }) });
    },
  });
}

const fixtures = [
  fixture('test_simple_text', () => undefined),
  fixture('test_image_content', () => png),
  fixture('test_audio_content', () => wav),
  fixture('test_embedded_resource', () => text),
  fixture('test_error_handling', () => {
    throw new Problem(toolFailed, 'This tool intentionally returns an error for testing');
  }),
  fixture('test_tool_with_progress', (report) => {
    report(0);
    report(0.5);
    report(1);
    return undefined;
  }),
];

let sample: ToolSample;
let server: PublicServer;
beforeAll(async () => {
  sample = await sampleToolApp({ tools: fixtures, environment: { DATABASE_URL: migratedDatabase } });
  server = await startServer({ port: 0, host: '127.0.0.1', listener: sample.app, log: silent });
});
afterAll(async () => {
  await server.drain({ graceMs: 0, limitMs: 1_000, endStreams: () => undefined });
  await sample.stop();
  rmSync(folder, { recursive: true, force: true });
});

const checks = z.array(z.looseObject({ id: z.string(), status: z.string() }));

interface SuiteRun {
  readonly output: string;
  /** By scenario. */
  readonly checks: ReadonlyMap<string, z.output<typeof checks>>;
}

/** Runs all scenarios of a revision in one process, also those that do not apply: starting one takes longer than most run. */
async function runSuite(revision: string): Promise<SuiteRun> {
  const url = `http://localhost:${server.port}/mcp`;
  const results = join(folder, revision);
  const parameters = ['--url', url, '--suite', 'all', '--spec-version', revision, '--output-dir', results];
  const { promise, resolve } = Promise.withResolvers<string>();
  execFile(
    process.execPath,
    [suite, 'server', ...parameters],
    { cwd: folder, timeout: 300_000, maxBuffer: 16_777_216 },
    (_error, stdout, stderr) => {
      resolve(stripVTControlCharacters(stdout + stderr));
    },
  );
  const output = await promise;
  const scenario = /^=== Running scenario: (\S+) ===$([^]*?)(?=^=== )/gm;
  return {
    output,
    checks: new Map(
      [...output.matchAll(scenario)].map(([, name = '', words = '']) => {
        const saved = /^Results saved to (.*)$/m.exec(words)?.[1];
        const file = saved === undefined ? undefined : join(saved, 'checks.json');
        return [name, file === undefined ? [] : checks.parse(JSON.parse(readFileSync(file, 'utf8')))];
      }),
    ),
  };
}

const runs = new Map<string, Promise<SuiteRun>>();
function shareRun(revision: string): Promise<SuiteRun> {
  const started = runs.get(revision) ?? runSuite(revision);
  runs.set(revision, started);
  return started;
}

for (const [revision, expected] of Object.entries(scenarios)) {
  test(`${revision}: lists every scenario of the suite`, async () => {
    const { output, checks: found } = await shareRun(revision);
    assert.deepEqual([...found.keys()].sort(), Object.keys(expected).sort(), output.slice(-3_000));
  });

  for (const [name, outcome] of Object.entries(expected)) {
    test(`${revision}: ${name}`, async (t) => {
      if (typeof outcome === 'string') t.skip(outcome);
      const { output, checks: found } = await shareRun(revision);
      const having = (status: string): string[] =>
        (found.get(name) ?? []).filter((check) => check.status === status).map(({ id }) => id);
      assert.deepEqual(having('FAILURE'), typeof outcome === 'object' ? outcome.but : [], output.slice(-3_000));
      // One that checks nothing fails nothing either.
      assert.ok(having('SUCCESS').length > 0);
      assert.deepEqual(having('WARNING'), []);
    });
  }
}
