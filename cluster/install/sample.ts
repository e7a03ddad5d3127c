// The sample app, submitted as anyone would: proof that a folder becomes a site.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { folderKey, readText, writeText } from '../files.ts';
import { httpsUrl } from '../node/ports.ts';
import { answers } from '../node/probe.ts';
import { node } from '../node/settings.ts';
import { paths } from '../paths.ts';
import { run } from '../shell.ts';
import { waitFor } from '../wait.ts';

/** Writes down where the installation is reached, for `npm run submit`. */
export async function writeAddresses(ports: { https: number }): Promise<undefined> {
  const addresses = {
    baseUrl: httpsUrl(node.baseDomain, ports),
    gitUrl: httpsUrl(`git.${node.baseDomain}`, ports),
    internalGitUrl: 'http://git.moorage-git.svc.cluster.local',
  };
  await writeText(paths.installation, `${JSON.stringify(addresses, null, 2)}\n`);
  return undefined;
}

async function sampleAnswers(ports: { https: number }): Promise<boolean> {
  const ca = await readFile(paths.authority, 'utf8');
  return await answers(`${httpsUrl(`hello.${node.baseDomain}`, ports)}/`, { tls: { ca }, connect: { host: '127.0.0.1', port: ports.https } });
}

/** Submits manifests/samples/hello as anyone would, unless this very content was submitted and answers. */
export async function submitSample(ports: { https: number }): Promise<string> {
  const folder = join(paths.root, 'manifests', 'samples', 'hello');
  const stamp = join(paths.state, 'sample');
  const key = await folderKey(folder);
  if ((await readText(stamp)) === key && (await sampleAnswers(ports))) return 'answers';
  const log = join(paths.logs, 'sample.log');
  await run(process.execPath, [join(paths.root, 'cluster', 'submit', 'main.ts'), folder], { log });
  await waitFor('an answer of the sample app', () => sampleAnswers(ports), { seconds: 30 });
  await writeText(stamp, key);
  return 'submitted, built and answers';
}
