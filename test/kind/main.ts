// `npm run test:kind`: a Docker engine, a node image from packages, Moorage on kind by `up --kind`, end-to-end tests,
// an installation by `up --context`, and `down`. Closes with one line that counts: `N passed, N failed`.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { registryImage } from '../../cli/kind/docker.ts';
import { paths } from '../../localnode/paths.ts';
import { readCommandLine, UsageError } from '../../lib/command-line.ts';
import { formatElapsed, printLine } from '../../cli/report.ts';
import { findEngine, lab, runIn, showIn, type Engine } from './engine.ts';
import { ensureHubImages } from './hub-images.ts';
import { ensureNodeImage } from './node-image.ts';

/** End-to-end tests that hold on any cluster of ours. The site from which tools read needs root. */
const files = [
  ...['kinds', 'rejections', 'sandbox', 'rollout', 'kubectl'],
  ...(process.getuid?.() === 0 ? ['tools'] : []),
];
const usage = `usage: npm run test:kind [-- FILE...]

  FILE   ${files.join(', ')}: these alone, without the installation by \`up --context\``;
const wanted = readCommandLine({ usage, positionals: files.length, options: {} }, ({ positionals }) => {
  const unknown = positionals.find((name) => !files.includes(name));
  if (unknown !== undefined) throw new UsageError(`${unknown} is not one of ${files.join(', ')}`);
  return positionals;
});

/** Base images of the tests' own Dockerfiles, which builds find in the registry where Docker Hub is out of reach. */
const fixtureBases = ['debian:bookworm-slim'];

/** The command that runs one file of the end-to-end tests against the cluster that is up. */
function endToEnd(file: string): readonly string[] {
  return ['node', 'test/main.ts', 'e2e', `e2e/${file}`];
}

const outcomes: { name: string; passed: boolean; milliseconds: number }[] = [];

/** Runs one part of the test and notes how it went. Returns its value, or undefined when it failed. */
async function part<T>(name: string, body: () => Promise<T>): Promise<T | undefined> {
  printLine(`\n== ${name}`);
  const begun = Date.now();
  let value: T | undefined;
  try {
    value = await body();
  } catch (error) {
    printLine(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  outcomes.push({ name, passed: value !== undefined, milliseconds: Date.now() - begun });
  return value;
}

function parts(engine: Engine, env: Readonly<Record<string, string>>) {
  /** A part that is one command, which must end with 0. */
  const command = (name: string, line: readonly string[]): Promise<true | undefined> =>
    part(name, async () => {
      const code = await showIn(engine, line, env);
      if (code !== 0) throw new Error(`${line.join(' ')} ended with ${String(code)}`);
      return true as const;
    });
  const cluster = (...args: string[]): readonly string[] => ['node', 'cli/main.ts', ...args];
  return { command, cluster };
}

/** Where Docker Hub is out of reach, images of the same names are built from packages. */
async function prepareImages(engine: Engine): Promise<Record<string, string>> {
  const reachable = await runIn(engine, ['docker', 'pull', '--quiet', registryImage]).then(
    () => true,
    () => false,
  );
  if (reachable) return {};
  await ensureHubImages(engine);
  const { node, registry } = await ensureNodeImage(engine);
  return { MOORAGE_KIND_NODE_IMAGE: node, MOORAGE_KIND_REGISTRY_IMAGE: registry };
}

/** Takes the release off the cluster and installs it again as on a cluster that a person has. */
async function proveContext({ command, cluster }: ReturnType<typeof parts>, engine: Engine): Promise<void> {
  const values = join(lab, 'values.yaml');
  const scope = ['--namespace', 'moorage-system', '--kubeconfig', paths.kubeconfig];
  const saved = await part('values of the release', async () => {
    const { findHelm } = await import('../../cli/install/programs.ts');
    await writeFile(
      values,
      await runIn(engine, [await findHelm(), 'get', 'values', 'moorage', ...scope, '-o', 'yaml']),
    );
    return true;
  });
  if (saved === undefined) return;
  const context = ['--context', 'kind-moorage'];
  await command('down --context', cluster('down', ...context));
  await command('up --context', cluster('up', ...context, '--values', values));
  await command('status --context', cluster('status', ...context));
  await command('submit after up --context', ['node', 'cli/moorage/main.ts', 'submit', 'test/fixtures/static']);
}

async function testCluster(engine: Engine, images: Record<string, string>): Promise<void> {
  const all = parts(engine, { ...images, KUBECONFIG: paths.kubeconfig });
  const { command, cluster } = all;
  await command('down, of what an earlier run left', cluster('down', '--kind'));
  if ((await command('up --kind, from nothing', cluster('up', '--kind'))) === undefined) return;
  await command('up again', cluster('up'));
  await command('status', cluster('status'));
  if (images['MOORAGE_KIND_NODE_IMAGE'] !== undefined)
    await command('base images of the fixtures', ['node', 'test/kind/seed.ts', ...fixtureBases]);
  for (const file of files)
    if (wanted.length === 0 || wanted.includes(file)) await command(`e2e ${file}`, endToEnd(file));
  if (wanted.length === 0) await proveContext(all, engine);
  if (process.env['KEEP_CLUSTER'] === undefined) await command('down', cluster('down'));
}

const begun = Date.now();
const engine = await part('Docker engine', findEngine);
if (engine !== undefined) {
  try {
    const images = await part('images', () => prepareImages(engine));
    if (images !== undefined) await testCluster(engine, images);
  } finally {
    if (process.env['KEEP_CLUSTER'] === undefined) await engine.close();
  }
}
printLine('');
for (const { name, passed, milliseconds } of outcomes)
  printLine(`${passed ? 'ok' : '!!'} ${name.padEnd(40)} ${formatElapsed(milliseconds).padStart(12)}`);
const failed = outcomes.filter(({ passed }) => !passed).length;
printLine(`\nkind: ${formatElapsed(Date.now() - begun)}\n${outcomes.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
