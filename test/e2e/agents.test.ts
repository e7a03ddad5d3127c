// Agents of four kinds do their jobs on a real cluster, each with a client that its makers wrote: the official MCP
// client, the AI SDK, OpenAI's SDK, and an agent of A2A.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { connectA2aClient } from '../support/agents/a2a-client.ts';
import { aiSdkModelJobs, connectAiSdk } from '../support/agents/ai-sdk.ts';
import { connectMcpClient, type ConnectedClient } from '../support/agents/mcp-client.ts';
import { openAiJobs } from '../support/agents/openai.ts';
import type { Job, Site } from '../support/agents/place.ts';
import { toolJobs } from '../support/agents/tool-jobs.ts';
import { baseUrl, localFetch } from '../support/cluster.ts';

const place: Site = { baseUrl: baseUrl.origin, fetch: localFetch };

function does({ name, run }: Job): void {
  test(name, async (context) => {
    await context.annotate(await run());
  });
}

const kinds: Readonly<Record<string, (place: Site) => Promise<ConnectedClient>>> = {
  'the official MCP client': connectMcpClient,
  'the AI SDK': connectAiSdk,
  'an agent of A2A': connectA2aClient,
};

for (const [kind, connect] of Object.entries(kinds))
  describe(kind, () => {
    let client: ConnectedClient | undefined;
    beforeAll(async () => {
      client = await connect(place);
    });
    afterAll(() => client?.close());
    const connected = (): ConnectedClient => client ?? assert.fail('not connected');

    test('finds the tools', () => {
      // Over MCP, search_tools and call_tool find and call the operations of apps.
      const own = connected().tools.filter((name) => !['search_tools', 'call_tool'].includes(name));
      assert.equal(own.length, 22, own.join(', '));
    });
    for (const job of toolJobs(place, (name, fields) => connected().call(name, fields))) does(job);
  });

describe('the AI SDK, with models', () => {
  for (const job of aiSdkModelJobs(place)) does(job);
});

describe("OpenAI's SDK", () => {
  for (const job of openAiJobs(place)) does(job);
});
