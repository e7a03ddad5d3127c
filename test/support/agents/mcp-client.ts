// An agent with the official MCP client.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Site } from './place.ts';
import { envelope, type CallTool } from './results.ts';

export interface ConnectedClient {
  readonly call: CallTool;
  /** Names of the tools that it found. */
  readonly tools: readonly string[];
  close(): Promise<void>;
}

export async function connectMcpClient({ baseUrl, fetch }: Site): Promise<ConnectedClient> {
  const client = new Client({ name: 'trial', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', baseUrl), { fetch }));
  const { tools } = await client.listTools();
  return {
    tools: tools.map(({ name }) => name),
    async call(name, fields) {
      const result = await client.callTool(
        { name, arguments: { ...fields } },
        { timeout: 300_000, onprogress: () => undefined },
      );
      if (result.isError === true) throw new Error(JSON.stringify(result.content));
      return envelope.parse(result.structuredContent);
    },
    close: () => client.close(),
  };
}
