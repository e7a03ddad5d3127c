// `npm run show:walks -- [NAME...]`: the source files and functions that one request enters, so that a person can judge
// whether each file is worth opening.
import { readCommandLine, UsageError } from '../../lib/command-line.ts';
import { CallCounter, type EnteredFiles } from '../support/walks/entered.ts';
import { walks, type Walk, type WalkHere } from '../support/walks/walks.ts';

const usage = `usage: npm run show:walks -- [--files] [NAME...]

  NAME      a walk to measure (default: all): ${walks.map(({ name }) => name).join(', ')}
  --files   list files without their functions`;

const { chosen, filesOnly } = readCommandLine(
  { usage, options: { files: { type: 'boolean', default: false } }, positionals: walks.length },
  ({ values, positionals }) => {
    const unknown = positionals.find((name) => !walks.some((walk) => walk.name === name));
    if (unknown !== undefined) throw new UsageError(`there is no walk ${unknown}`);
    return {
      filesOnly: values.files,
      chosen: walks.filter(({ name }) => positionals.length === 0 || positionals.includes(name)),
    };
  },
);

for (const walk of chosen) process.stdout.write(await describeWalk(walk));
// Pools and timers of what was started may keep the process alive.
process.exit(0);

async function describeWalk(walk: Walk): Promise<string> {
  const entered = 'measure' in walk ? await walk.measure() : await measureHere(walk);
  const lines = [...entered].flatMap(([file, functions]) =>
    filesOnly ? [`  ${file}`] : [`  ${file}`, `    ${functions.join(', ')}`],
  );
  return [`${walk.name}: ${walk.title}`, ...lines, `${entered.size} files (target ${walk.target})\n\n`].join('\n');
}

async function measureHere(walk: WalkHere): Promise<EnteredFiles> {
  const started = await walk.start();
  const counter = await CallCounter.start();
  try {
    await counter.measure(() => started.take(), { ...walk, runs: 1 });
    return await counter.measure(() => started.take(), walk);
  } finally {
    await counter.stop();
    await started.stop();
  }
}
