// A repository that is an MCP server over stdio: it becomes an app with /mcp, and agents call its tools at /mcp/{slug}, each
// caller in a process of its own.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import {
  appUrl,
  baseUrl,
  deleteApps,
  get,
  localFetch,
  readApp,
  runWithFiles,
  submit,
  waitFor,
} from '../support/cluster.ts';

const name = 'e2e-counter';
afterAll(() => deleteApps(name));

const files = {
  'requirements.txt': 'mcp==1.20.0\npydantic==2.11.9\n',
  'server.py': `from mcp.server.fastmcp import FastMCP

server = FastMCP("counter")
count = 0


@server.tool()
def add(number: int) -> int:
    """Adds a number to the count of this process."""
    global count
    count += number
    return count


if __name__ == "__main__":
    server.run()
`,
};

beforeAll(async () => {
  const ended = await runWithFiles(name, files, (folder) => submit(folder));
  assert.equal(ended.exitCode, 0, ended.all);
});

async function connect(url: URL): Promise<Client> {
  const client = new Client({ name: 'e2e', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(url, { fetch: localFetch }));
  return client;
}

const paid = z.looseObject({ result: z.looseObject({ text: z.string() }), cost_usd: z.number() });

test('its address serves the tools over streamable HTTP, and its plan says why', async () => {
  const client = await connect(appUrl(name, '/mcp'));
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map((tool) => tool.name),
    ['add'],
  );
  await client.close();
  assert.match((await readApp(name)).status?.plan?.reason ?? '', /MCP server.*stdio.*bridge/);
});

test('each call costs a use, and another session has a process of its own', async () => {
  const endpoint = new URL(`/mcp/${name}`, baseUrl);
  const [one, two] = await Promise.all([connect(endpoint), connect(endpoint)]);
  const add = async (client: Client, number: number): Promise<number> => {
    const { structuredContent } = await client.callTool({ name: `${name}__add`, arguments: { number } });
    const { result, cost_usd: cost } = paid.parse(structuredContent);
    assert.equal(cost, 0.0001);
    return Number(result.text);
  };
  assert.deepEqual([await add(one, 2), await add(two, 10)], [2, 10]);
  // At any replica of the API, and these calls reach all of them.
  for (const sum of [3, 4, 5, 6, 7, 8, 9, 10]) assert.equal(await add(one, 1), sum);
  await Promise.all([one.close(), two.close()]);
});

test('its page shows the tool with a form', async () => {
  // Each replica of the API lists the tools itself, a moment after the app is live.
  const page = await waitFor('the tool on the page', async () => {
    const { status, body } = await get(new URL(`/apps/${name}`, baseUrl));
    assert.equal(status, 200);
    return body.includes('Adds a number to the count of this process.') ? body : undefined;
  });
  assert.match(page, /<form method="post"[^>]*#tool-e2e-counter__add"/);
});
