// Requests a second and latency of a cheap tool on one core: GET /t, /mcp, and the SDK's reference server on /mcp, one
// after the other.
//   npm run bench:tools -- --seconds 5 --width 32
// The servers are bound to core 0 and the load comes from the others, so a machine that does other work shows less;
// what a call costs in CPU
// time, and how many of them that is in a second of one core, it shows all the same.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Agent, request } from 'undici';
import { readCommandLine, parseWholeNumber } from '../../lib/command-line.ts';

const usage = `usage: npm run bench:tools -- [--seconds N] [--width N]

  --seconds N   seconds of each measurement (5)
  --width N     connections (32)`;

const { seconds, width } = readCommandLine(
  { usage, options: { seconds: { type: 'string', default: '5' }, width: { type: 'string', default: '32' } } },
  ({ values }) => ({
    seconds: parseWholeNumber('--seconds', values.seconds),
    width: parseWholeNumber('--width', values.width),
  }),
);
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const call = (_meta?: object): string =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'echo', arguments: { text: 'hello' }, ...(_meta === undefined ? {} : { _meta }) },
  });
const accept = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const modern = {
  body: call(meta),
  headers: { ...accept, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'echo' },
};
const legacy = { body: call(), headers: { ...accept, 'mcp-protocol-version': '2025-11-25' } };

interface Target {
  readonly name: string;
  readonly server: 'ours' | 'reference';
  readonly path: string;
  readonly send?: { readonly body: string; readonly headers: Record<string, string> };
}

const targets: readonly Target[] = [
  { name: 'ours GET /t/echo', server: 'ours', path: '/t/echo?text=hello' },
  { name: 'ours /mcp 2026-07-28', server: 'ours', path: '/mcp', send: modern },
  { name: 'reference /mcp 2026-07-28', server: 'reference', path: '/mcp', send: modern },
  { name: 'ours /mcp 2025-11-25', server: 'ours', path: '/mcp', send: legacy },
  { name: 'reference /mcp 2025-11-25', server: 'reference', path: '/mcp', send: legacy },
];

async function load(url: string, { send }: Target, ms: number): Promise<number[]> {
  const agent = new Agent({ connections: width, pipelining: 1 });
  const latencies: number[] = [];
  const end = performance.now() + ms;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (performance.now() < end) {
        const since = performance.now();
        const { statusCode, body } = await request(url, {
          dispatcher: agent,
          method: send === undefined ? 'GET' : 'POST',
          ...send,
        });
        const text = await body.text();
        if (statusCode !== 200 || !text.includes('hello'))
          throw new Error(`${url}: ${statusCode} ${text.slice(0, 300)}`);
        latencies.push(performance.now() - since);
      }
    }),
  );
  await agent.close();
  return latencies.sort((a, b) => a - b);
}

/** CPU time that a process has used, in user and kernel. */
function cpuMs(pid = 0): number {
  // After the name, which ends with the last bracket: state is field 3 of proc(5), utime and stime are 14 and 15, in
  // ticks of 10 ms.
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return ((user ?? 0) + (system ?? 0)) * 10;
}

async function measure(target: Target): Promise<void> {
  const child = spawn(
    'taskset',
    ['-c', '0', process.execPath, join(import.meta.dirname, 'tools-server.ts'), target.server],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const ended = once(child, 'exit');
  try {
    const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const url = `http://127.0.0.1:${port}${target.path}`;
    await load(url, target, 1_000);
    const before = cpuMs(child.pid);
    const latencies = await load(url, target, seconds * 1_000);
    const cpu = (cpuMs(child.pid) - before) / latencies.length;
    const at = (share: number): string => (latencies[Math.floor(latencies.length * share)] ?? 0).toFixed(1);
    process.stdout.write(
      `${target.name.padEnd(28)} ${String(Math.round(latencies.length / seconds)).padStart(6)} requests/s   p50 ${at(0.5)} ms   p95 ${at(0.95)} ms   p99 ${at(0.99)} ms   CPU ${cpu.toFixed(3)} ms a call, ${String(Math.round(1_000 / cpu)).padStart(5)} a second\n`,
    );
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}

process.stdout.write(
  `${cpus().length} cores, load before ${loadavg()
    .map((one) => one.toFixed(1))
    .join(' ')}; ${width} connections, ${seconds} s each\n`,
);
for (const target of targets) await measure(target);
