// Memory of the API and of the worker processes of tools, under the largest calls that are legal: so many of each kind
// at once.
//   npm run bench:tool-memory -- --width 8
// Counts what is resident (PSS where the system reports it, so that shared pages count once) in the whole process tree,
// and says the peak.
import { readdirSync, readFileSync } from 'node:fs';
import sharp from 'sharp';
import { createBuiltinTools } from '../../api/tools/builtin/all.ts';
import { computeMemoryBudgetMb } from '../../api/tools/engine/workers/worker-process.ts';
import { readCommandLine, parseWholeNumber } from '../../lib/command-line.ts';
import { sampleToolApp } from '../support/tools/sample.ts';

const usage = `usage: npm run bench:tool-memory -- [--width N] [--only TEXT]

  --width N     calls at once (8)
  --only TEXT   measure only the tools with this text in their name`;

const { width, only } = readCommandLine(
  { usage, options: { width: { type: 'string', default: '8' }, only: { type: 'string', default: '' } } },
  ({ values }) => ({ width: parseWholeNumber('--width', values.width), only: values.only }),
);

const noise = await sharp({
  create: {
    width: 2_048,
    height: 2_048,
    channels: 3,
    background: 'white',
    noise: { type: 'gaussian', mean: 128, sigma: 60 },
  },
})
  .jpeg({ quality: 35 })
  .toBuffer();
const words = 'This are a sentence what have some mistake in them, and its long. ';
const chain = (count: number): string =>
  Array.from({ length: count }, (_, n) => `n${n} -> n${(n * 7 + 1) % count}`).join('\n');
const rows = (count: number): object[] =>
  Array.from({ length: count }, (_, n) => ({ x: n, y: (n * 7_919) % 1_000, kind: `k${n % 20}` }));

/** Largest calls, as near to the limits of their tools as they still do work. */
const calls: Readonly<Record<string, readonly [tool: string, fields: Record<string, unknown>]>> = {
  'run_code that fills its memory': [
    'run_code',
    { code: 'const all = []; for (;;) all.push(new Array(10000).fill(1.5));' },
  ],
  'render_diagram graphviz': [
    'render_diagram',
    { kind: 'graphviz', source: `digraph { ${chain(400).replaceAll('\n', ';')} }`, format: 'png' },
  ],
  'render_diagram d2': ['render_diagram', { kind: 'd2', source: chain(150), format: 'png' }],
  'render_diagram mermaid': [
    'render_diagram',
    { kind: 'mermaid', source: `graph TD\n${chain(150).replaceAll('->', '-->')}`, format: 'png' },
  ],
  make_chart: [
    'make_chart',
    {
      spec: {
        data: { values: rows(8_000) },
        mark: 'point',
        width: 2_000,
        height: 2_000,
        encoding: {
          x: { field: 'x', type: 'quantitative' },
          y: { field: 'y', type: 'quantitative' },
          color: { field: 'kind' },
        },
      },
      format: 'png',
    },
  ],
  check_grammar: ['check_grammar', { text: words.repeat(280) }],
  validate_json: [
    'validate_json',
    { schema: { type: 'array', items: { type: 'object', required: ['x', 'z'] } }, data: rows(8_000) },
  ],
  convert_image: ['convert_image', { data: noise.toString('base64'), format: 'avif', width: 8_192 }],
  'convert_image to png': ['convert_image', { data: noise.toString('base64'), format: 'png', width: 8_192 }],
  make_slides: [
    'make_slides',
    {
      outline: `# Deck\n${Array.from({ length: 40 }, (_, n) => `## Slide ${n}\n${'- a point that is made here\n'.repeat(8)}`).join('\n')}`,
    },
  ],
};

/** Of this process and all below it, in MB: [ours, the workers']. */
function resident(): [number, number] {
  const parents = new Map(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid): [number, number][] => {
        try {
          const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
          return [[Number(pid), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])]];
        } catch {
          return [];
        }
      }),
  );
  let below = 0;
  for (const [pid] of parents) {
    for (let up: number | undefined = parents.get(pid); up !== undefined && up > 0; up = parents.get(up)) {
      if (up === process.pid) below += memoryOf(pid);
    }
  }
  return [memoryOf(process.pid), below];
}

function memoryOf(pid: number): number {
  try {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1_024;
  } catch {
    return 0;
  }
}

const sample = await sampleToolApp({
  make: createBuiltinTools,
  environment: { DATABASE_URL: 'pglite:', MOORAGE_FREE_QUOTA_USD: '100' },
});

async function measure(name: string, kinds: readonly (readonly [string, Record<string, unknown>])[]): Promise<void> {
  let [own, workers, together] = [0, 0, 0];
  const watch = setInterval(() => {
    const [ours, below] = resident();
    [own, workers, together] = [Math.max(own, ours), Math.max(workers, below), Math.max(together, ours + below)];
  }, 50);
  const outcomes = await Promise.all(
    Array.from({ length: width }, async (_, n) => {
      const [tool, fields] = kinds[n % kinds.length] ?? ['', {}];
      const answer = await sample.request(`/t/${tool}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': `192.0.${n}.1` },
        body: JSON.stringify(fields),
      });
      const text = await answer.text();
      return answer.status === 200
        ? '200'
        : `${answer.status} ${/problems\/([a-z-]+)/.exec(text)?.[1] ?? text.slice(0, 100)}`;
    }),
  );
  clearInterval(watch);
  const counts = Object.entries(Object.groupBy(outcomes, (one) => one))
    .map(([outcome, all]) => `${all?.length ?? 0} x ${outcome}`)
    .join(', ');
  process.stdout.write(
    `${name.padEnd(32)} process ${own.toFixed(0).padStart(5)} MB   workers ${workers.toFixed(0).padStart(5)} MB   together at most ${together.toFixed(0).padStart(5)} MB   ${counts}\n`,
  );
}

const [start] = resident();
process.stdout.write(
  `${width} calls at once; before any, ${start.toFixed(0)} MB, the embedded database included; workers share ${computeMemoryBudgetMb()} MB\n`,
);
const chosen = Object.entries(calls).filter(([name]) => name.includes(only));
for (const [name, call] of chosen) await measure(name, [call]);
if (chosen.length > 1)
  await measure(
    'all of them, mixed',
    chosen.map(([, call]) => call),
  );
await sample.stop();
