// `npm run corpus`: measures Moorage on public repositories, by their plans or by running them.
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { Fault } from '../../cli/submit/installation.ts';
import { readCommandLine, UsageError } from '../../lib/command-line.ts';
import { readCorpus, type Entry } from './corpus.ts';
import { plan } from './plan/plan.ts';
import { publish } from './publish.ts';
import { run } from './run/run.ts';

const usage = `usage: npm run corpus -- plan|run|publish [--only NAMES] [--mirror DIR] [--hide-dockerfiles] [--parallel N] [--again] [--out DIR]

  plan                 ask the planner of every repository, and railpack and nixpacks when they are on the PATH
  run                  submit every repository to the running cluster, and look at what goes live
  publish              write the tables of --out to docs/measured, with the judgements of corpus.json as they are now
  --only NAMES         repositories whose name contains one of these, with commas between them
  --mirror DIR         bring them in from git directories DIR/OWNER+NAME (otherwise, and for others, from the network)
  --hide-dockerfiles   remove Dockerfiles before they are planned or submitted
  --parallel N         submissions at once, 1 to 8 (run; default 2)
  --again              those that have a result too (run)
  --out DIR            where tables, lines of JSON and screenshots go, outside of the project (default: a folder of the
                       system's temporary one); a run that was stopped continues there`;

const commands = ['plan', 'run', 'publish'] as const;

interface Request {
  readonly command: (typeof commands)[number];
  readonly entries: readonly Entry[];
  readonly mirror: string | undefined;
  readonly hide: boolean;
  readonly parallel: number;
  readonly again: boolean;
  readonly out: string;
}

const options = {
  only: { type: 'string' },
  mirror: { type: 'string' },
  'hide-dockerfiles': { type: 'boolean', default: false },
  parallel: { type: 'string', default: '2' },
  again: { type: 'boolean', default: false },
  out: { type: 'string', default: join(tmpdir(), 'moorage-corpus') },
} as const;

const project = resolve(import.meta.dirname, '../..');
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

function parallelOf(text: string): number {
  const parallel = Number(text);
  if (!Number.isInteger(parallel) || parallel < 1 || parallel > 8) throw new UsageError('--parallel is 1 to 8');
  return parallel;
}

function readRequest(): Request {
  return readCommandLine({ usage, options, positionals: 1 }, ({ values, positionals: [command] }) => {
    const chosen = commands.find((each) => each === command);
    if (chosen === undefined) throw new UsageError('plan, run or publish is required');
    const from = process.env['INIT_CWD'] ?? '.';
    const out = resolve(from, values.out);
    if (!relative(project, out).startsWith('..')) throw new UsageError('--out must be outside of the project');
    const parallel = parallelOf(values.parallel);
    const entries = readCorpus(values.only);
    if (entries.length === 0) throw new UsageError(`no repository's name contains "${values.only ?? ''}"`);
    const mirror = values.mirror === undefined ? undefined : resolve(from, values.mirror);
    return { command: chosen, entries, mirror, hide: values['hide-dockerfiles'], parallel, again: values.again, out };
  });
}

async function execute(request: Request): Promise<readonly string[]> {
  if (request.command === 'publish') return publish(request.out, join(project, 'docs', 'measured'));
  if (request.command === 'plan') await plan(request.entries, { ...request, say });
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
