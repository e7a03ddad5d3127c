// MCP clients of other people against a running /mcp with hosted apps behind it: each lists every tool and calls one of
// ours and an operation of an app, without an error.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createMCPClient } from '@ai-sdk/mcp';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { execa } from 'execa';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { startServer, type PublicServer } from '../../../../api/http/server.ts';
import { silent } from '../../../support/api/sample.ts';
import { sampleAppsServer, addAgentPaths, type AppsSample } from '../../../support/apps/sample.ts';
import { installMcpClients } from '../../../support/discovery/generators.ts';
import { runExclusively } from '../../../support/exclusively.ts';

let sample: AppsSample;
let server: PublicServer;
let programs: string;

beforeAll(async () => {
  programs = await runExclusively(installMcpClients);
  sample = await sampleAppsServer();
  server = await startServer({ port: 0, host: '127.0.0.1', listener: sample.app, log: silent });
  await sample.host(
    'shop',
    (request, response) => {
      if (request.url === '/openapi.json')
        response.end(JSON.stringify({ openapi: '3.1.0', paths: { '/items': { get: { operationId: 'list.items' } } } }));
      else if (request.url === '/mcp') response.writeHead(404).end();
      else response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":["pen"]}');
    },
    (app) => addAgentPaths(app),
  );
  while ((sample.apps.findOperations('shop')?.names.length ?? 0) === 0) await sleep(20);
}, 300_000);
afterAll(async () => {
  await server.drain({ graceMs: 0, limitMs: 1_000, endStreams: () => undefined });
  await sample.stop();
});

interface Outcome {
  readonly names: readonly string[];
  readonly failed: boolean;
  readonly structured: unknown;
}

type ToolCall = readonly [url: string, name: string, fields: Record<string, unknown>];
/** Lists the tools of each call's endpoint and makes the call, one after the other. */
type Run = (calls: readonly ToolCall[]) => Promise<readonly Outcome[]>;

const oneByOne =
  (run: (...call: ToolCall) => Promise<Outcome>): Run =>
  async (calls) => {
    const outcomes: Outcome[] = [];
    for (const call of calls) outcomes.push(await run(...call));
    return outcomes;
  };

const official = (mode: 'auto' | 'legacy'): Run =>
  oneByOne(async (url, name, fields) => {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    try {
      const { tools } = await client.listTools();
      const { isError, structuredContent } = await client.callTool({ name, arguments: fields });
      return { names: tools.map((tool) => tool.name), failed: isError === true, structured: structuredContent };
    } finally {
      await client.close();
    }
  });

const result = z.looseObject({ isError: z.boolean().optional(), structuredContent: z.unknown() });
const aiSdk = oneByOne(async (url, name, fields) => {
  const client = await createMCPClient({ transport: { type: 'http', url } });
  try {
    const tools = await client.tools();
    const tool = tools[name] ?? assert.fail(`no tool ${name}`);
    const answer = result.parse(await tool.execute(fields, { toolCallId: 'test', messages: [], context: {} }));
    return { names: Object.keys(tools), failed: answer.isError === true, structured: answer.structuredContent };
  } finally {
    await client.close();
  }
});

const outcomes = z.array(z.object({ names: z.array(z.string()), failed: z.boolean(), structured: z.unknown() }));
/** In one process: most of its time it loads the client. */
const python =
  (client: string): Run =>
  async (calls) => {
    const program = join(import.meta.dirname, '..', '..', '..', 'support', 'mcp', 'clients.py');
    const { stdout } = await execa(join(programs, 'python'), [program, client, JSON.stringify(calls)]);
    return outcomes.parse(JSON.parse(stdout.trim().split('\n').at(-1) ?? ''));
  };

const clients: Readonly<Record<string, Run>> = {
  '@modelcontextprotocol/client, 2026-07-28': official('auto'),
  '@modelcontextprotocol/client, 2025': official('legacy'),
  '@ai-sdk/mcp': aiSdk,
  'mcp (Python)': python('mcp-auto'),
  'mcp (Python), 2025': python('mcp-legacy'),
  fastmcp: python('fastmcp'),
};

for (const [client, run] of Object.entries(clients))
  test(`${client}: lists and calls`, { timeout: 120_000 }, async () => {
    const url = `http://127.0.0.1:${server.port}/mcp`;
    const all = await run([
      [url, 'echo', { text: 'ahoy' }],
      [url, 'search_tools', { query: 'items' }],
      [url, 'call_tool', { name: 'shop__list_items', arguments: {} }],
      [`${url}/shop`, 'shop__list_items', {}],
    ]);
    const [ours, searched, called, own] = all;
    assert.ok(ours !== undefined && searched !== undefined && called !== undefined && own !== undefined);
    assert.ok(ours.names.includes('search_tools') && ours.names.includes('call_tool'), String(ours.names));
    assert.deepEqual(own.names, ['shop__list_items']);
    assert.ok([...ours.names, ...own.names].every((name) => /^[a-zA-Z0-9_-]{1,64}$/.test(name)));
    assert.deepEqual(
      all.map(({ failed }) => failed),
      [false, false, false, false],
    );
    assert.match(JSON.stringify(ours.structured), /"echoed":"ahoy"/);
    assert.match(JSON.stringify(searched.structured), /shop__list_items/);
    for (const { structured } of [called, own]) assert.match(JSON.stringify(structured), /"items":\["pen"\]/);
  });
