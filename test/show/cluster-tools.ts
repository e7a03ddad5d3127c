// `npm run show:cluster-tools -- [folder]`: calls each of the 22 tools twice over the gateway of the local cluster, prints
// what came, what it cost and how long it took, and leaves the files in the folder to be looked at.
import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readCommandLine } from '../../lib/command-line.ts';
import { callOnCluster, type ClusterCall } from '../support/tools/cluster-call.ts';
import { startPublicSite } from '../support/tools/public-site.ts';
import { shownCalls, type ShownCall } from './calls.ts';

const usage = `usage: npm run show:cluster-tools -- [FOLDER]

  FOLDER   where to leave the files that the tools make (default: moorage-cluster-tools in the temporary folder)`;

const folder = readCommandLine(
  { usage, options: {}, positionals: 1 },
  ({ positionals: [named] }) => named ?? join(tmpdir(), 'moorage-cluster-tools'),
);

function short(value: object | string, most: number): string {
  const text = JSON.stringify(value).replaceAll('|', String.raw`\|`);
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** Keeps the file of an answer. @returns its name in the folder */
function keep(tool: string, { envelope, file }: ClusterCall): string {
  if (envelope.artifact === undefined) return '';
  if (file.length !== envelope.artifact.bytes)
    throw new Error(`${tool}: ${file.length} bytes of ${envelope.artifact.bytes}`);
  const name = `${tool}-${envelope.artifact.file_name}`;
  writeFileSync(join(folder, name), file);
  return name;
}

/** Calls twice, and gives a row of the table. */
async function show({ tool, input, options = {} }: ShownCall): Promise<string> {
  const first = await callOnCluster(tool, input, options);
  const second = await callOnCluster(tool, input, options);
  const { result, detail, cost_usd: cost, cost_source: source } = first.envelope;
  const cells = [
    tool,
    `\`${short(input, 90)}\``,
    first.status,
    short(result ?? detail ?? '', 140),
    `${String(cost ?? '')} ${source ?? ''}`,
    Math.round(first.milliseconds),
    Math.round(second.milliseconds),
    keep(tool, first),
  ];
  return `| ${cells.join(' | ')} |`;
}

mkdirSync(folder, { recursive: true });
const site = await startPublicSite();
try {
  process.stdout.write(
    '| tool | request | status | answer | USD | ms first | ms second | file |\n|---|---|---|---|---|---|---|---|\n',
  );
  for (const call of shownCalls(site)) process.stdout.write(`${await show(call)}\n`);
  process.stdout.write(`\nfiles: ${folder}\n`);
} finally {
  await site.stop();
}
process.exit(0);
