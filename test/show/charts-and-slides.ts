// Draws the corpora of charts and of decks, judged by what must be in them, with sheets of pictures to look at and a
// table. Decks are drawn by LibreOffice (soffice) and pdftoppm, of the Debian packages libreoffice-impress and
// poppler-utils; without them they are judged by their XML alone.
//   node test/show/charts-and-slides.ts --out /tmp/charts [--like TEXT] [--publish FILE]
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { createMakeChartTool } from '../../api/tools/builtin/make-chart/make-chart.ts';
import { createWorkers } from '../../api/tools/engine/workers/pool.ts';
import { readCommandLine } from '../../lib/command-line.ts';
import { chartsOf, judge, kinds } from '../corpus/charts/judge.ts';
import { deckCases, judgeDeck, slidesToolWith } from '../corpus/decks/judge.ts';
import { servicesWith } from '../support/tools/call.ts';
import { sheets, type Shown } from './sheet.ts';

const usage = 'usage: node test/show/charts-and-slides.ts --out DIR [--like TEXT] [--publish FILE]';
const { out, like, publish } = readCommandLine(
  {
    usage,
    options: {
      out: { type: 'string', default: '' },
      like: { type: 'string', default: '' },
      publish: { type: 'string', default: '' },
    },
  },
  ({ values }) => ({ out: values.out, like: values.like, publish: values.publish }),
);
if (out === '') throw new Error(usage);

interface Row {
  readonly kind: string;
  readonly name: string;
  readonly verdict: 'right' | 'refused, rightly' | 'wrong';
  readonly words: string;
}

const workers = createWorkers();
const rows: Row[] = [];
mkdirSync(out, { recursive: true });
await charts();
await decks();
if (publish !== '') writeFileSync(publish, page());
await workers.close();

function note(row: Row): void {
  rows.push(row);
  process.stdout.write(`${line(row)}\n`);
}

async function charts(): Promise<void> {
  const tool = createMakeChartTool(servicesWith({ workers }));
  for (const kind of kinds) {
    const pictures: Shown[] = [];
    for (const each of chartsOf(kind).filter(({ name }) => name.includes(like))) {
      const { verdict, words, png } = await judge(tool, each);
      note({ kind: `chart: ${kind}`, name: each.name, verdict, words });
      if (png !== undefined) pictures.push({ name: each.name, png });
    }
    await sheets(out, kind, pictures);
  }
}

async function decks(): Promise<void> {
  const tool = slidesToolWith(workers);
  for (const each of deckCases.filter(({ name }) => name.includes(like))) {
    const { verdict, words, pptx } = await judgeDeck(tool, each);
    note({ kind: 'deck', name: each.name, verdict, words });
    if (pptx !== undefined) await drawDeck(each.name.replaceAll(/\W+/g, '-'), pptx);
  }
}

async function drawDeck(name: string, pptx: Uint8Array): Promise<void> {
  const folder = join(out, 'decks', name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'deck.pptx'), pptx);
  const profile = `-env:UserInstallation=file://${join(out, 'libreoffice')}`;
  const drawn = await execa({
    reject: false,
  })`soffice ${profile} --headless --convert-to pdf --outdir ${folder} ${join(folder, 'deck.pptx')}`;
  if (drawn.failed) {
    process.stderr.write(`${name}: no picture, since soffice did not run: ${drawn.shortMessage ?? ''}\n`);
    return;
  }
  await execa`pdftoppm -r 60 -png ${join(folder, 'deck.pdf')} ${join(folder, 'slide')}`;
  const files = readdirSync(folder).filter((file) => file.endsWith('.png'));
  const pictures = files.toSorted().map((file) => ({ name: `${name} ${file}`, png: readFileSync(join(folder, file)) }));
  await sheets(out, `deck-${name}`, pictures);
}

function line({ kind, name, verdict, words }: Row): string {
  return `| ${kind} | ${name} | ${verdict} | ${words} |`;
}

function page(): string {
  const all = [...new Set(rows.map(({ kind }) => kind))];
  const count = (kind: string, verdict: Row['verdict']): number =>
    rows.filter((row) => row.kind === kind && row.verdict === verdict).length;
  const sums = all.map(
    (kind) => `| ${kind} | ${count(kind, 'right')} | ${count(kind, 'refused, rightly')} | ${count(kind, 'wrong')} |`,
  );
  return `# Charts and slides

Written by \`npm run show:charts -- --out DIR --publish docs/measured/charts-and-slides.md\`, which draws the charts of [test/corpus/charts](../../test/corpus/charts) as SVG and as PNG: 30 examples of Vega-Lite's own gallery with their data (package \`vega-datasets\`), the plain form with many names, scripts and numbers, and specifications with faults; and makes the decks of [test/corpus/decks](../../test/corpus/decks).
A chart is right when all of its words are in the SVG, none is cut, and its warnings are those expected. A deck is right when each slide has a title placeholder, all of its text stands in it, lists begin with their numbers, pictures are there, and nothing stands outside of its slide. Refused, rightly: it asks for what is not there, and the refusal says so. DIR gets sheets of pictures, to be looked at; decks are drawn by LibreOffice, whose PDFs have no colour emoji.

| what | right | refused, rightly | wrong |
|---|---|---|---|
${sums.join('\n')}

| what | name | verdict | size or slides and warnings, or refusal |
|---|---|---|---|
${rows.map(line).join('\n')}
`;
}
