// What a client reads before its first call: the list of the built-in tools, all on, some off, and without those.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { backingServices } from '../../../../../api/tools/services/backing-services.ts';
import { createBuiltinTools } from '../../../../../api/tools/builtin/all.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';

const nowhere = 'http://127.0.0.1:1';
const everything = {
  DATABASE_URL: migratedDatabase,
  MOORAGE_ROUTER_URL: nowhere,
  MOORAGE_ROUTER_KEY: 'sk-platform-1234',
  ...Object.fromEntries(Object.values(backingServices).map(({ variable }) => [variable, nowhere])),
};

let allOn: ToolSample;
let someOff: ToolSample;
beforeAll(async () => {
  [allOn, someOff] = [
    await sampleToolApp({ make: createBuiltinTools, environment: everything }),
    await sampleToolApp({ make: createBuiltinTools }),
  ];
});
afterAll(() => Promise.all([allOn.stop(), someOff.stop()]));

const field = z.looseObject({ description: z.string().optional() });
const listed = z.object({
  name: z.string(),
  description: z.string(),
  inputSchema: z.looseObject({ properties: z.record(z.string(), field) }),
  outputSchema: z.looseObject({ properties: z.record(z.string(), z.unknown()) }).optional(),
});
const answer = z.object({ result: z.object({ tools: z.array(listed) }) });

async function list(sample: ToolSample, query = ''): Promise<{ bytes: number; tools: z.output<typeof listed>[] }> {
  const response = await sample.request(`/mcp${query}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-06-18',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  });
  const text = await response.text();
  const { tools } = answer.parse(JSON.parse(text.slice(text.indexOf('{')))).result;
  return { bytes: Buffer.byteLength(text), tools };
}

const isOff = ({ description }: { description: string }): boolean => description.includes('Not available here.');

test('the list of all tools is below 40 kB, whatever is on', async (context) => {
  for (const [name, sample] of Object.entries({ 'all on': allOn, 'some off': someOff })) {
    const { bytes, tools } = await list(sample);
    await context.annotate(`${name}: ${bytes} bytes, ${tools.filter(isOff).length} of ${tools.length} off`);
    assert.equal(tools.length, 24);
    assert.ok(bytes < 40_000, `${name}: ${bytes} bytes`);
  }
});

test('each tool names the fields of its result, and one that is off comes last', async () => {
  const every = (await list(allOn)).tools;
  assert.ok(every.every((tool) => !isOff(tool) && tool.outputSchema === undefined));
  const described = every.filter(({ name }) => !['search_tools', 'call_tool'].includes(name));
  for (const { name, description } of described) assert.match(description, / Result: \{\w+.*\}\.$/, name);
  assert.match(
    described[0]?.description ?? '',
    / Result: \{query, results: \[\{kind, title, url\?, snippet, engines: \[\], published\?\}\], failed_engines: \[\{engine, reason\}\], suggestions: \[\]\}\.$/,
  );
  const { tools } = await list(someOff);
  const firstOff = tools.findIndex(isOff);
  assert.ok(firstOff > 0 && firstOff < tools.length - 1);
  assert.ok(tools.slice(firstOff).every(isOff));
});

test('?off=hide leaves out what is off', async () => {
  const { tools } = await list(someOff);
  const names = (given: typeof tools): string[] => given.map(({ name }) => name);
  assert.deepEqual(names((await list(someOff, '?off=hide')).tools), names(tools.filter((tool) => !isOff(tool))));
  assert.equal((await list(allOn, '?off=hide')).tools.length, 24);
});

test('an unavailable tool names what it needs in a few words, and a call of it says the rest', async () => {
  const off = (await list(someOff)).tools.filter(isOff);
  const reasons = new Map(
    off.map(({ name, description }) => [name, description.replace(/^.* Not available here\. /, '')]),
  );
  assert.equal(reasons.get('web_search'), 'Needs SearXNG, a meta-search engine (tools.searxng.enabled).');
  assert.equal(reasons.get('ask_model'), 'Needs language models.');
  const response = await someOff.request('/t/web_search?query=ships');
  assert.match(
    await response.text(),
    /Helm value tools\.searxng\.enabled, or, outside a cluster, with MOORAGE_SEARXNG_URL/,
  );
});

test('what the schema leaves out is in the descriptions', async () => {
  const { tools } = await list(allOn);
  const files = tools.filter(({ inputSchema }) => inputSchema.properties['artifact'] !== undefined);
  assert.equal(files.length, 6);
  for (const { name, description } of files)
    assert.match(description, /exactly one of [\w(), ]+ and (?:artifact|data)\b/, name);
  for (const { name, inputSchema } of tools)
    for (const [argument, { pattern, description = '' }] of Object.entries(inputSchema.properties)) {
      assert.equal(pattern, undefined, `${name}.${argument}`);
      if (argument === 'url') assert.match(description, /public http or https URL/, name);
    }
});

test('every argument is described', async () => {
  for (const { name, inputSchema } of (await list(allOn)).tools)
    for (const [argument, { description }] of Object.entries(inputSchema.properties))
      assert.ok((description ?? '') !== '', `${name}.${argument}`);
});
