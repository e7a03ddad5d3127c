// Draws the corpus of diagrams: each source as SVG and as PNG, judged by what must be in it, with sheets of pictures to
// look at and a table.
//   node test/show/diagrams.ts --out /tmp/diagrams [--only mermaid]
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRenderDiagramTool } from '../../api/tools/builtin/render-diagram/render-diagram.ts';
import { createWorkers } from '../../api/tools/engine/workers/pool.ts';
import { readCommandLine } from '../../lib/command-line.ts';
import { corpusOf, judge, kinds, type Judged } from '../corpus/diagrams/judge.ts';
import { servicesWith } from '../support/tools/call.ts';
import { sheets } from './sheet.ts';

const usage = 'usage: node test/show/diagrams.ts --out DIR [--only mermaid|d2|graphviz] [--like TEXT] [--publish FILE]';
const { out, only, like, publish } = readCommandLine(
  {
    usage,
    options: {
      out: { type: 'string', default: '' },
      only: { type: 'string', default: '' },
      like: { type: 'string', default: '' },
      publish: { type: 'string', default: '' },
    },
  },
  ({ values }) => ({ out: values.out, only: values.only, like: values.like, publish: values.publish }),
);
if (out === '') throw new Error(usage);

const workers = createWorkers();
const tool = createRenderDiagramTool(servicesWith({ workers }));
mkdirSync(out, { recursive: true });
const lines: string[] = [];
const counts = new Map<string, Record<Judged['verdict'], number>>();
for (const kind of kinds.filter((each) => only === '' || each === only)) {
  const pictures: { name: string; png: Uint8Array }[] = [];
  for (const each of corpusOf(kind).filter(({ name }) => name.includes(like))) {
    const since = performance.now();
    const judged = await judge(tool, kind, each);
    const ms = Math.round(performance.now() - since);
    const line = `| ${kind} | ${each.name} | ${judged.verdict} | ${judged.words} |`;
    process.stdout.write(`${line} ${ms} ms\n`);
    lines.push(line);
    count(kind, judged.verdict);
    keep(kind, each.name, judged);
    if (judged.png !== undefined) pictures.push({ name: each.name, png: judged.png });
  }
  await sheets(out, kind, pictures);
}
if (publish !== '') writeFileSync(publish, page());
await workers.close();

function count(kind: string, verdict: Judged['verdict']): void {
  const now = counts.get(kind) ?? { right: 0, 'refused, rightly': 0, wrong: 0 };
  counts.set(kind, { ...now, [verdict]: now[verdict] + 1 });
}

function page(): string {
  const sums = [...counts].map(
    ([kind, each]) => `| ${kind} | ${each.right} | ${each['refused, rightly']} | ${each.wrong} |`,
  );
  return `# Diagrams

Written by \`node test/show/diagrams.ts --out DIR --publish docs/measured/diagrams.md\`, which draws the sources of [test/corpus/diagrams](../../test/corpus/diagrams) (for Mermaid, all examples of \`@mermaid-js/examples\`, which cover every kind, and sources that other engines misdraw) as SVG and as PNG.
Right: all labels of the source are in the SVG, what must be there besides is, no HTML is left in it, and it has a size. Refused, rightly: the source is wrong, or asks for what is not there, and the refusal says so. DIR gets the pictures and sheets of them, to be looked at.

| language | right | refused, rightly | wrong |
|---|---|---|---|
${sums.join('\n')}

| language | source | verdict | size and warnings, or refusal |
|---|---|---|---|
${lines.join('\n')}
`;
}

function keep(kind: string, name: string, { png, svg }: Judged): void {
  const file = join(out, `${kind} ${name}`.replaceAll(/[^\w-]+/g, '-'));
  if (svg !== undefined) writeFileSync(`${file}.svg`, svg);
  if (png !== undefined) writeFileSync(`${file}.png`, png);
}
