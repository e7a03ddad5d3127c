// The sample app, submitted by `npm run submit`: proof that a folder becomes a site.
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { folderKey, readText, writeText } from '../../localnode/files.ts';
import { httpsUrl } from '../../localnode/node/gateway/ports.ts';
import { answers } from '../../localnode/node/daemons/probe.ts';
import { node } from '../../localnode/node/settings.ts';
import { paths } from '../../localnode/paths.ts';
import { CommandError, run } from '../../localnode/shell.ts';
import { noReport, type Report } from '../../localnode/steps.ts';
import { waitFor } from '../../localnode/wait.ts';

/** Writes the addresses of the installation to a file, for `npm run submit`. */
export async function writeAddresses(ports: { https: number }): Promise<undefined> {
  const addresses = {
    baseUrl: httpsUrl(node.baseDomain, ports),
    appsUrl: httpsUrl(node.appsDomain, ports),
    gitUrl: httpsUrl(`git.${node.baseDomain}`, ports),
    internalGitUrl: 'http://git.moorage-git.svc.cluster.local',
  };
  await writeText(paths.installation, `${JSON.stringify(addresses, null, 2)}\n`);
  return undefined;
}

async function sampleAnswers(ports: { https: number }): Promise<boolean> {
  const ca = await readFile(paths.authority, 'utf8');
  return await answers(`${httpsUrl(`hello.${node.appsDomain}`, ports)}/`, {
    tls: { ca },
    connect: { host: '127.0.0.1', port: ports.https },
  });
}

/**
 * `submit` exits with 2 when it could not submit at all, as in the first minute of a new cluster, whose quotas do not
 * know the new resource yet. A rejection is final.
 */
async function submitOnceServed(folder: string, logs: string, report: Report): Promise<void> {
  await mkdir(logs, { recursive: true });
  const log = join(logs, 'sample.log');
  for (let left = 30; ; left -= 1) {
    try {
      await run(process.execPath, [join(paths.root, 'cli', 'submit', 'main.ts'), folder], {
        log,
        onLine: (line) => {
          report(line.trim());
        },
      });
      return;
    } catch (error) {
      if (left === 0 || !(error instanceof CommandError) || error.exitCode !== 2) throw error;
      await sleep(3000);
    }
  }
}

/** Where an installation keeps its state and its logs. */
export interface SampleFolders {
  state: string;
  logs: string;
}

/** Submits manifests/samples/hello, unless the same content was submitted before and answers. */
export async function submitSample(
  ports: { https: number },
  folders: SampleFolders,
  report: Report = noReport,
): Promise<string> {
  const folder = join(paths.root, 'manifests', 'samples', 'hello');
  const stamp = join(folders.state, 'sample');
  const key = await folderKey(folder);
  if ((await readText(stamp)) === key && (await sampleAnswers(ports))) return 'answers';
  await submitOnceServed(folder, folders.logs, report);
  await waitFor('the sample app to answer', () => sampleAnswers(ports), { seconds: 30 });
  await writeText(stamp, key);
  return 'submitted, built, answers';
}
