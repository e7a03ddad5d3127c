// An MCP server over stdio for tests of the bridge, with tools for everything that has to pass it: progress, logs, requests to the
// client, cancellation, processes that leave its group, and output that is no protocol.
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const server = new McpServer({ name: 'stdio-sample', version: '1.2.3' }, { capabilities: { logging: {} } });
const text = (value: string): { content: { type: 'text'; text: string }[] } => ({
  content: [{ type: 'text', text: value }],
});

server.registerTool('echo', { description: 'Repeats.', inputSchema: z.object({ text: z.string() }) }, (fields) =>
  text(fields.text),
);
server.registerTool('pid', { inputSchema: z.object({}) }, () => text(String(process.pid)));
server.registerTool('variable', { inputSchema: z.object({ name: z.string() }) }, ({ name }) =>
  text(process.env[name] ?? '(not set)'),
);
server.registerTool('progress', { inputSchema: z.object({ steps: z.int() }) }, async ({ steps }, { mcpReq }) => {
  const progressToken = mcpReq._meta?.progressToken;
  for (let progress = 1; progress <= steps; progress += 1)
    await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: steps } });
  return text(`${steps} steps`);
});
server.registerTool('sample', { inputSchema: z.object({}) }, async (_, { mcpReq }) => {
  const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: 'hello' } }];
  const params = { messages, maxTokens: 10 };
  const { content } = await mcpReq.send({ method: 'sampling/createMessage', params });
  return text(JSON.stringify(content));
});
server.registerTool('elicit', { inputSchema: z.object({}) }, async (_, { mcpReq }) => {
  const requestedSchema = { type: 'object' as const, properties: { name: { type: 'string' as const } } };
  const params = { mode: 'form', message: 'Your name?', requestedSchema };
  const answer = await mcpReq.send({ method: 'elicitation/create', params });
  return text(JSON.stringify(answer));
});
server.registerTool('log', { inputSchema: z.object({ text: z.string() }) }, async (fields, { mcpReq }) => {
  await mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data: fields.text } });
  return text('logged');
});
/** Says on standard error when it is cancelled. */
server.registerTool('wait', { inputSchema: z.object({}) }, async (_, { mcpReq }) => {
  process.stderr.write('waiting\n');
  await sleep(600_000, undefined, { signal: mcpReq.signal }).catch(() => process.stderr.write('cancelled\n'));
  return text('over');
});
/** Starts a process in a session of its own, as browsers are started, and one in its own group. */
server.registerTool('leave', { inputSchema: z.object({}) }, () => {
  const started = [true, false].map((detached) => spawn('sleep', ['1000'], { detached, stdio: 'ignore' }).pid);
  return text(started.join(' '));
});
server.registerTool('noise', { inputSchema: z.object({}) }, () => {
  process.stdout.write('no protocol\n');
  process.stderr.write('secret on standard error\n');
  return text('quiet again');
});
server.registerTool('large', { inputSchema: z.object({ bytes: z.int() }) }, ({ bytes }) => text('x'.repeat(bytes)));
server.registerTool('exit', { inputSchema: z.object({ code: z.int() }) }, ({ code }) => {
  process.exit(code);
});
server.registerTool('ignore', { inputSchema: z.object({}) }, () => {
  process.on('SIGTERM', () => undefined);
  setInterval(() => undefined, 1000);
  return text('SIGTERM has no effect now');
});

await server.connect(new StdioServerTransport());
