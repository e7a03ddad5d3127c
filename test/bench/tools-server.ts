// One server of the bench, in a process of its own: ours with a cheap tool, or the SDK's reference way of serving the
// same tool.
import { createServer, type RequestListener } from 'node:http';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { toNodeHandler } from 'srvx/node';
import { z } from 'zod';
import { startServer } from '../../api/http/server.ts';
import { silent } from '../support/api/sample.ts';
import { sampleToolApp } from '../support/tools/sample.ts';
import { echo } from '../support/tools/sample-tools.ts';

if (process.argv[2] === 'ours') {
  const sample = await sampleToolApp({
    tools: [echo],
    environment: { MOORAGE_TOOL_CALLS: '1000', MOORAGE_TOOL_CALLS_PER_CALLER: '1000' },
  });
  const { port } = await startServer({ port: 0, host: '127.0.0.1', listener: sample.app, log: silent });
  process.stdout.write(`${port}\n`);
} else {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'reference', version: '1.0.0' });
    server.registerTool(
      'echo',
      {
        description: 'Echo',
        inputSchema: z.object({ text: z.string() }),
        outputSchema: z.object({ echoed: z.string() }),
      },
      ({ text }) => ({ content: [{ type: 'text', text }], structuredContent: { echoed: text } }),
    );
    return server;
  });
  const server = createServer(toNodeHandler((request) => handler.fetch(request)) as RequestListener);
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    process.stdout.write(`${typeof address === 'object' && address !== null ? address.port : 0}\n`);
  });
}
