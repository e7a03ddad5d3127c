// `npm run corpus`: measures Moorage on public repositories, by their plans or by running them.
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { Fault } from '../../cli/submit/installation.ts';
import { readCommandLine, UsageError } from '../../lib/command-line.ts';
import {
  readCorpus,
  readOpenHalf,
  readSealedHalf,
  setNames,
  type Entry,
  type RunEntry,
  type SetName,
} from './corpus.ts';
import { plan } from './plan/plan.ts';
import { publish } from './publish.ts';
import { run } from './run/run.ts';

const usage = `usage: npm run corpus -- plan|run|publish [--set NAME] [--only NAMES] [--mirror DIR] [--hide-dockerfiles] [--add-license] [--parallel N] [--again] [--note TEXT] [--out DIR]

  plan                 ask the planner of every repository, and railpack and nixpacks when they are on the PATH
  run                  submit every repository to the running cluster, and look at what goes live
  publish              write the tables of --out to docs/measured, with the judgements of corpus.json as they are now
  --set NAME           first (the default), or a half of the second corpus: open, or sealed (run and publish only)
  --only NAMES         repositories whose name contains one of these, with commas between them
  --mirror DIR         bring them in from git directories DIR/OWNER+NAME (otherwise, and for others, from the network)
  --hide-dockerfiles   remove Dockerfiles before they are planned or submitted
  --add-license        add a licence file to repositories without one (run), to measure what comes after that refusal
  --parallel N         submissions at once, 1 to 8 (run; default 2)
  --again              those that have a result too (run)
  --note TEXT          a sentence for the page of plans, such as what the network did not give to the others (plan)
  --out DIR            where tables, lines of JSON and screenshots go, outside of the project (default: a folder of the
                       system's temporary one for each set); a run that was stopped continues there`;

const commands = ['plan', 'run', 'publish'] as const;

interface Request {
  readonly command: (typeof commands)[number];
  readonly set: SetName;
  /** Those to run. */
  readonly entries: readonly RunEntry[];
  /** Those of them whose plan somebody expects: none of the sealed half. */
  readonly expected: readonly Entry[];
  readonly mirror: string | undefined;
  readonly hide: boolean;
  readonly addLicense: boolean;
  readonly parallel: number;
  readonly again: boolean;
  readonly note: string | undefined;
  readonly out: string;
}

const options = {
  set: { type: 'string', default: 'first' },
  only: { type: 'string' },
  mirror: { type: 'string' },
  'hide-dockerfiles': { type: 'boolean', default: false },
  'add-license': { type: 'boolean', default: false },
  parallel: { type: 'string', default: '2' },
  again: { type: 'boolean', default: false },
  note: { type: 'string' },
  out: { type: 'string' },
} as const;

const project = resolve(import.meta.dirname, '../..');
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

function readParallel(text: string): number {
  const parallel = Number(text);
  if (!Number.isInteger(parallel) || parallel < 1 || parallel > 8) throw new UsageError('--parallel is 1 to 8');
  return parallel;
}

function readRequest(): Request {
  return readCommandLine({ usage, options, positionals: 1 }, ({ values, positionals: [command] }) => {
    const chosen = commands.find((each) => each === command);
    if (chosen === undefined) throw new UsageError('plan, run or publish is required');
    const set = setNames.find((each) => each === values.set);
    if (set === undefined) throw new UsageError(`--set is one of ${setNames.join(', ')}`);
    const from = process.env['INIT_CWD'] ?? '.';
    const out = resolve(from, values.out ?? defaultFolder(set));
    if (!relative(project, out).startsWith('..')) throw new UsageError('--out must be outside of the project');
    const parallel = readParallel(values.parallel);
    const selected = readSelected(set, values.only);
    if (selected.entries.length === 0) throw new UsageError(`no repository's name contains "${values.only ?? ''}"`);
    if (chosen === 'plan' && selected.expected.length === 0)
      throw new UsageError('plan compares with expectations, and the sealed half has none: use run');
    const mirror = values.mirror === undefined ? undefined : resolve(from, values.mirror);
    const { 'hide-dockerfiles': hide, 'add-license': addLicense, again, note } = values;
    return { command: chosen, set, ...selected, mirror, hide, addLicense, parallel, again, note, out };
  });
}

/** Results of different sets do not mix. */
function defaultFolder(set: SetName): string {
  return join(tmpdir(), set === 'first' ? 'moorage-corpus' : `moorage-corpus-${set}`);
}

function readSelected(set: SetName, only: string | undefined): Pick<Request, 'entries' | 'expected'> {
  if (set === 'sealed') return { entries: readSealedHalf(only), expected: [] };
  const expected = set === 'open' ? readOpenHalf(only) : readCorpus(only);
  return { entries: expected, expected };
}

async function execute(request: Request): Promise<readonly string[]> {
  if (request.command === 'publish') return publish(request.out, join(project, 'docs', 'measured'), request.set);
  if (request.command === 'plan') await plan(request.expected, { ...request, say });
  else await run(request.entries, { ...request, say });
  return [request.out];
}

const request = readRequest();
try {
  for (const path of await execute(request)) say(`written to ${path}`);
} catch (error) {
  if (!(error instanceof Fault)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
