// A server over stdio behind the bridge, called through /mcp/{slug} as callers do: state, own values and the end of its processes.
import assert from 'node:assert/strict';
import { request as sendRequest, type RequestListener } from 'node:http';
import { pipeline } from 'node:stream';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { test } from 'vitest';
import { z } from 'zod';
import { startServer } from '../../../../api/http/server.ts';
import type { App } from '../../../../api/apps/hosted-apps.ts';
import { silent } from '../../../support/api/sample.ts';
import { addAgentPaths, sampleAppsServer } from '../../../support/apps/sample.ts';
import { compileBridge, listProcesses, startBridge, waitFor } from '../../../support/mcp/bridge.ts';

/** Stands for the Service of the app. */
function createProxy(origin: string): RequestListener {
  return (request, response) => {
    const { method, headers, url } = request;
    const onward = sendRequest(new URL(url ?? '/', origin), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      pipeline(answer, response, () => undefined);
    });
    pipeline(request, onward, () => undefined);
  };
}

function addPlan(app: App): App {
  const environment = [{ name: 'API_KEY', secret: true, required: false }];
  const mcp = { file: 'a.js', transport: 'stdio', command: 'node a.js', path: '/mcp', bridged: true } as const;
  return { ...app, status: { ...app.status, plan: { strategy: 'node', reason: '', mcp: { ...mcp, environment } } } };
}

const shape = z.looseObject({ result: z.looseObject({ text: z.string() }) });

test('keeps the process of a caller between calls, sets its values, and ends it with the session', async () => {
  const mark = 'BRIDGED_APP_MARK=1';
  await using bridge = await startBridge(await compileBridge(), {
    options: ['--transport', 'stdio', '--session-variable', 'API_KEY'],
    variables: { BRIDGED_APP_MARK: '1' },
  });
  const sample = await sampleAppsServer();
  const server = await startServer({ port: 0, host: '127.0.0.1', listener: sample.app, log: silent });
  await sample.host('sampler', createProxy(bridge.origin), (app) => addPlan(addAgentPaths(app)));
  await waitFor(() => sample.apps.findOperations('sampler') !== undefined);
  const connect = async (headers: Record<string, string> = {}): Promise<[Client, StreamableHTTPClientTransport]> => {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
    const transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${server.port}/mcp/sampler`), {
      requestInit: { headers },
    });
    await client.connect(transport);
    return [client, transport];
  };
  const call = async (client: Client, name: string, fields: Record<string, unknown> = {}): Promise<string> => {
    const { structuredContent } = await client.callTool({ name: `sampler__${name}`, arguments: fields });
    return shape.parse(structuredContent).result.text;
  };
  const [[plain], [own, transport]] = [
    await connect(),
    await connect({ 'moorage-mcp-environment': '{"API_KEY":"of the caller"}' }),
  ];
  const pids = [await call(plain, 'pid'), await call(plain, 'pid'), await call(own, 'pid'), await call(own, 'pid')];
  assert.deepEqual([pids[0], pids[2]], [pids[1], pids[3]]);
  assert.notEqual(pids[0], pids[2]);
  const variable = { name: 'API_KEY' };
  assert.deepEqual(
    [await call(plain, 'variable', variable), await call(own, 'variable', variable)],
    ['(not set)', 'of the caller'],
  );
  // The process dies, and the next call gets another.
  process.kill(Number(pids[0]), 'SIGKILL');
  await waitFor(() => !listProcesses(mark).includes(Number(pids[0])));
  assert.notEqual(await call(plain, 'pid'), pids[0]);
  await transport.terminateSession();
  await waitFor(() => !listProcesses(mark).includes(Number(pids[2])));
  await server.drain({ graceMs: 0, limitMs: 1_000, endStreams: () => undefined });
  await sample.stop();
  assert.deepEqual(listProcesses(mark), [bridge.process.pid]);
  assert.doesNotMatch(bridge.log(), /of the caller/);
});
