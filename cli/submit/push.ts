// Pushes a snapshot to the installation's git server.
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { Fault } from './fault.ts';
import type { Installation } from './installation.ts';
import type { Snapshot } from './snapshot.ts';

/** Owner of repositories that are pushed from this machine. */
export const localOwner = 'local';

/** Pauses before a push is tried again whose connection broke. */
const retryMs = [1_000, 3_000];
const brokenConnection =
  /RPC failed|hung up unexpectedly|unexpected disconnect|early EOF|Failed to connect|Connection (?:reset|refused)|returned error: 50[234]/;

/** Makes the snapshot the head of `main`. Returns the repository's address inside the cluster. @throws Fault */
export async function pushSnapshot(snapshot: Snapshot, name: string, installation: Installation): Promise<string> {
  const { gitUrl, internalGitUrl, gitPassword } = installation;
  if (gitPassword === undefined)
    throw new Fault('this installation has no git server for local folders: submit OWNER/NAME or a URL instead');
  const push = async (): Promise<string | undefined> => {
    const pushed = await execa(
      'git',
      ['push', '--quiet', '--force', `${gitUrl}/${localOwner}/${name}.git`, `${snapshot.commit}:refs/heads/main`],
      {
        cwd: snapshot.repository,
        env: gitEnvironment(installation, gitPassword),
        reject: false,
        stdin: 'ignore',
      },
    );
    return pushed.failed ? pushed.stderr.trim() || pushed.shortMessage : undefined;
  };
  let failure = await push();
  // The same commit again changes nothing, and a connection that broke says nothing of whether it arrived.
  for (const waitMs of retryMs) {
    if (failure === undefined || !brokenConnection.test(failure)) break;
    await delay(waitMs);
    failure = await push();
  }
  if (failure !== undefined)
    throw new Fault(
      `the push to ${gitUrl} failed: check the cluster with \`npm run status\`. Output of git: ${failure}`,
    );
  return `${internalGitUrl}/${localOwner}/${name}`;
}

/** Configuration in the environment, so that the password is in no process list. */
function gitEnvironment({ gitUrl, authority }: Installation, password: string): Record<string, string> {
  const { hostname, port, protocol } = new URL(gitUrl);
  const settings: [string, string][] = [
    ['http.extraHeader', `Authorization: Basic ${Buffer.from(`moorage:${password}`).toString('base64')}`],
    ['credential.helper', ''],
    ['http.proxy', ''],
    // git of Debian 12 (libcurl-gnutls 7.88.1) now and then sends 64 KiB of a push twice by HTTP/2; other clients, and
    // HTTP/1.1, do not.
    ['http.version', 'HTTP/1.1'],
  ];
  if (hostname.endsWith('.localhost'))
    settings.push(['http.curloptResolve', `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}:127.0.0.1`]);
  return {
    GIT_TERMINAL_PROMPT: '0',
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
    ...(authority === undefined ? {} : { GIT_SSL_CAINFO: authority.path }),
  };
}
