// An MCP server over stdio with two tools and without a library: for tests that start one process for each of many
// sessions. Loading the SDK takes four times as long as all that such a process does (stdio-server.ts).
import { spawn } from 'node:child_process';

interface Message {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: { readonly name?: string; readonly protocolVersion?: string };
}

const tools = ['pid', 'leave'].map((name) => ({ name, inputSchema: { type: 'object' } }));

/** Returns the result of a tool: the process id, or those of two processes, of which one has its own session. */
function callTool(name: string | undefined): unknown {
  const start = (detached: boolean): number | undefined => spawn('sleep', ['1000'], { detached, stdio: 'ignore' }).pid;
  const text = name === 'leave' ? [start(true), start(false)].join(' ') : String(process.pid);
  return { content: [{ type: 'text', text }] };
}

function answerMessage({ method, params }: Message): unknown {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'session-sample', version: '1' },
      };
    case 'tools/list':
      return { tools };
    case 'tools/call':
      return callTool(params?.name);
    default:
      return {};
  }
}

let rest = '';
process.stdin.setEncoding('utf8').on('data', (chunk: string) => {
  const lines = `${rest}${chunk}`.split('\n');
  rest = lines.pop() ?? '';
  for (const line of lines) {
    const message = JSON.parse(line) as Message;
    if (message.id === undefined) continue;
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: message.id, result: answerMessage(message) })}\n`);
  }
});
