// `npm run apps`: hosts the eight apps of manifests/apps on the cluster, and follows them until they are live or rejected.
import { resolve } from 'node:path';
import { describeStatus } from '../../api/apps/index.ts';
import { readCommandLine, UsageError } from '../../lib/command-line.ts';
import { createKubectl } from '../../localnode/kubectl.ts';
import { paths } from '../../localnode/paths.ts';
import { Fault, readInstallation } from '../submit/installation.ts';
import { follow, type Outcome, applyApp, readManifests, type AppManifest } from './host.ts';

const namespace = 'moorage-apps';
const usage = `usage: npm run apps -- [SLUG ...] [--copies FOLDER] [--no-wait]

  SLUG             the apps to host, such as chat-ui-4 (default: all of manifests/apps)
  --copies FOLDER  host apps whose clone (OWNER/NAME) is in the folder from the cluster's own git server, for
                   machines without internet access; host the others from their git host
  --no-wait        exit once the cluster has accepted them

exit codes: 0 all live, 1 one is rejected, 2 not hosted, 64 wrong usage`;

const printLine = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

interface Arguments {
  readonly apps: readonly AppManifest[];
  readonly copies: string | undefined;
  readonly wait: boolean;
}

function readArguments(apps: readonly AppManifest[]): Arguments {
  const options = { copies: { type: 'string' }, 'no-wait': { type: 'boolean', default: false } } as const;
  return readCommandLine({ usage, options, positionals: apps.length }, ({ values, positionals }) => {
    const unknown = positionals.find((slug) => !apps.some((app) => app.slug === slug));
    if (unknown !== undefined)
      throw new UsageError(`there is no app "${unknown}": it is one of ${apps.map(({ slug }) => slug).join(', ')}`);
    return {
      apps: positionals.length === 0 ? apps : apps.filter(({ slug }) => positionals.includes(slug)),
      copies: values.copies === undefined ? undefined : resolve(process.env['INIT_CWD'] ?? '.', values.copies),
      wait: !values['no-wait'],
    };
  });
}

async function main(): Promise<number> {
  const { apps, copies, wait } = readArguments(await readManifests());
  await readInstallation();
  const kubectl = createKubectl(paths.kubectl, paths.kubeconfig);
  for (const app of apps)
    await applyApp(app, { kubectl, namespace, copies, readInstallation: () => readInstallation(), printLine });
  if (!wait) return 0;
  const slugs = apps.map(({ slug }) => slug);
  const outcomes = await follow(slugs, { kubectl, namespace, printLine });
  for (const outcome of outcomes) printLine(formatOutcome(outcome));
  return outcomes.every(({ status }) => status.status === 'live') ? 0 : 1;
}

function formatOutcome({ slug, status }: Outcome): string {
  return `${slug.padEnd(20)} ${describeStatus(status, status.status === 'live' ? status.url : '')}`;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Fault)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
