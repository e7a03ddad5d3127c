// Chosen scenarios of the official conformance suite of MCP against /mcp of a running server, in both revisions; tools that they expect
// are made for them. Left out: prompts, resources, logging, completion, sampling and elicitation, which this server does not offer;
// `server-stateless`, of whose 28 checks 4 need tools that ask clients or log; `caching`, of which it passes a part; and scenarios that
// check nothing in a revision.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { startServer, type PublicServer } from '../../api/server.ts';
import { Problem } from '../../lib/problem.ts';
import { toolFailed } from '../../api/tools/problems.ts';
import { defineTool, type Artifact } from '../../api/tools/tool.ts';
import { silent } from '../api/sample.ts';
import { sampleToolApp, type ToolSample } from '../api/tools/sample.ts';

const suite = join(import.meta.dirname, '..', '..', 'node_modules', '@modelcontextprotocol', 'conformance', 'dist', 'index.js');
const folder = mkdtempSync(join(tmpdir(), 'moorage-conformance-'));

const png: Artifact = { bytes: Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64'), mediaType: 'image/png', fileName: 'dot.png' };
const wav: Artifact = { bytes: new Uint8Array(44), mediaType: 'audio/wav', fileName: 'silence.wav' };
const text: Artifact = { bytes: Buffer.from('Text of a file.'), mediaType: 'text/plain', fileName: 'file.txt' };

function fixture(name: string, run: (report: (done: number) => void) => Artifact | undefined): ReturnType<typeof defineTool> {
  return defineTool({
    name, title: name, description: 'Of the conformance suite.', price: '0', openWorld: false, input: z.strictObject({}), output: z.object({ ok: z.boolean() }), example: {},
    artifacts: ['image/png', 'audio/wav', 'text/plain'],
    run: (_input, { report }) => {
      const artifact = run((done) => { report({ done, message: 'under way' }); });
      return Promise.resolve({ result: { ok: true }, ...(artifact === undefined ? {} : { artifact }) });
    },
  });
}

const fixtures = [
  fixture('test_simple_text', () => undefined),
  fixture('test_image_content', () => png),
  fixture('test_audio_content', () => wav),
  fixture('test_embedded_resource', () => text),
  fixture('test_error_handling', () => { throw new Problem(toolFailed, 'This tool intentionally returns an error for testing'); }),
  fixture('test_tool_with_progress', (report) => { report(0); report(0.5); report(1); return undefined; }),
];

const scenarios: Readonly<Record<string, readonly string[]>> = {
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'tools-call-simple-text', 'tools-call-image', 'tools-call-audio', 'tools-call-embedded-resource', 'tools-call-error', 'tools-call-with-progress', 'dns-rebinding-protection'],
  '2026-07-28': ['tools-list', 'tools-call-simple-text', 'tools-call-image', 'tools-call-audio', 'tools-call-embedded-resource', 'tools-call-error', 'tools-call-with-progress', 'server-sse-multiple-streams', 'sep-2164-resource-not-found', 'dns-rebinding-protection', 'http-header-validation'],
};

let sample: ToolSample;
let server: PublicServer;
before(async () => {
  sample = await sampleToolApp({ tools: fixtures });
  server = await startServer({ port: 0, host: '127.0.0.1', fetch: sample.app.fetch, log: silent });
});
after(async () => {
  await server.drain({ graceMs: 0, limitMs: 1_000, endStreams: () => undefined });
  await sample.stop();
  rmSync(folder, { recursive: true, force: true });
});

for (const [revision, names] of Object.entries(scenarios)) {
  for (const name of names) {
    test(`${revision}: ${name}`, async () => {
      const url = `http://localhost:${server.port}/mcp`;
      const { promise, resolve } = Promise.withResolvers<{ failed: boolean; output: string }>();
      execFile(process.execPath, [suite, 'server', '--url', url, '--scenario', name, '--spec-version', revision], { cwd: folder, timeout: 60_000 }, (error, stdout, stderr) => {
        resolve({ failed: error !== null, output: stdout + stderr });
      });
      const { failed, output } = await promise;
      assert.ok(!failed, output.slice(-3_000));
      // A scenario that does not apply to a revision ends well too, without having checked anything.
      assert.match(output, /Passed: ([1-9]\d*)\/\1, 0 failed/);
    });
  }
}
