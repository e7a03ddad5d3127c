// A git server over SSH on loopback: OpenSSH's sshd, as forges run it, with one account and keys that open one repository each.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { paths } from '../../../localnode/paths.ts';
import { findFreePort } from '../free-port.ts';

const run = promisify(execFile);

export interface SshGitServer {
  readonly port: number;
  /** A line of known_hosts for 127.0.0.1. */
  readonly hostKey: string;
  /** Lets a key read one repository, as a deploy key of a forge does, and no other. */
  addDeployKey(publicKey: string, repository: string): Promise<void>;
  removeDeployKeys(): Promise<void>;
  /** Commits these files on main, in a repository that is created if it is missing. Gives the commit. */
  commit(repository: string, files: Readonly<Record<string, string>>): Promise<string>;
  /** What sshd has logged. */
  readLog(): string;
  stop(): Promise<void>;
}

/** sshd of the machine, or of the Debian package, which is only unpacked, so that it is never started by the system. */
async function findServerProgram(): Promise<string> {
  const installed = '/usr/sbin/sshd';
  if (existsSync(installed)) return installed;
  const folder = join(paths.cache, 'debian', 'openssh-server');
  const program = join(folder, 'usr/sbin/sshd');
  if (existsSync(program)) return program;
  const draft = await mkdtemp(join(tmpdir(), 'sshd-'));
  await chmod(draft, 0o777);
  await run('apt-get', ['download', 'openssh-server'], { cwd: draft });
  await run('/bin/sh', ['-c', 'dpkg-deb -x openssh-server_*.deb unpacked'], { cwd: draft });
  await mkdir(join(paths.cache, 'debian'), { recursive: true });
  await run('cp', ['-a', join(draft, 'unpacked'), `${folder}.draft`]);
  await rename(`${folder}.draft`, folder).catch(() => undefined);
  await rm(draft, { recursive: true, force: true });
  return program;
}

/** Clients sign in as `git`, as at forges. sshd sees an account of this name; the machine has none. */
const start = `set -e
mount --make-rprivate /
for file in passwd shadow; do mount --bind "$1/$file" "/etc/$file"; done
mount -t tmpfs none /run
mkdir /run/sshd
exec "$2" -D -e -f "$1/config"
`;

const forcedCommand = `#!/bin/sh
# Takes the repository that the key opens, and the command that the client asks for.
set -- "$1" $SSH_ORIGINAL_COMMAND
allowed="$1"; program="$2"; asked=$(printf '%s' "$3" | tr -d "'")
case "$program" in git-upload-pack) ;; *) echo 'ERROR: This deploy key is read-only.' >&2; exit 1 ;; esac
test "$asked" = "/$allowed.git" || { echo 'ERROR: Repository not found.' >&2; exit 1; }
exec git -c safe.directory='*' -c uploadpack.allowFilter=true -c uploadpack.allowAnySHA1InWant=true upload-pack "$ROOT/$allowed.git"
`;

/** Starts a server with its own folder. Needs root, for its own view of the machine's accounts. */
export async function startSshGitServer(): Promise<SshGitServer> {
  const program = await findServerProgram();
  const root = await mkdtemp(join(tmpdir(), 'git-over-ssh-'));
  const at = (name: string): string => join(root, name);
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at('host_key')]);
  await writeFile(at('serve'), forcedCommand.replace('$ROOT', root), { mode: 0o755 });
  await writeFile(at('keys'), '');
  await writeFile(
    at('passwd'),
    [
      await readFile('/etc/passwd', 'utf8'),
      'git:x:65533:65534::/nonexistent:/bin/sh\n',
      'sshd:x:65532:65534::/nonexistent:/bin/false\n',
    ].join(''),
  );
  // Without a password that matches; an account without any is locked.
  await writeFile(at('shadow'), `${await readFile('/etc/shadow', 'utf8')}git:*:20000:0:99999:7:::\n`, { mode: 0o600 });
  // sshd reads keys, and git the repositories, in the name of the account.
  await chmod(root, 0o755);
  const port = await findFreePort();
  await writeFile(
    at('config'),
    [
      ...['ListenAddress 127.0.0.1', `Port ${port}`, `HostKey ${at('host_key')}`, 'PidFile none', 'UsePAM no'],
      ...['StrictModes no', `AuthorizedKeysFile ${at('keys')}`, 'PasswordAuthentication no', 'AcceptEnv GIT_PROTOCOL'],
      ...['KbdInteractiveAuthentication no', 'AllowUsers git', 'MaxStartups 100', 'LogLevel VERBOSE'],
    ].join('\n'),
  );
  let log = '';
  const server = spawn('unshare', ['--mount', '/bin/sh', '-c', start, 'sh', root, program], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  server.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  await waitForServer(server, () => log);
  const [type = '', key = ''] = (await readFile(at('host_key.pub'), 'utf8')).split(' ');
  return {
    port,
    hostKey: `[127.0.0.1]:${port} ${type} ${key}`,
    async addDeployKey(publicKey, repository) {
      const line = `restrict,command="${at('serve')} ${repository}" ${publicKey}\n`;
      await writeFile(at('keys'), `${await readFile(at('keys'), 'utf8')}${line}`);
    },
    removeDeployKeys: () => writeFile(at('keys'), ''),
    commit: (repository, files) => commitFiles(root, repository, files),
    readLog: () => log,
    async stop() {
      server.kill();
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function waitForServer(server: ChildProcess, readLog: () => string): Promise<void> {
  while (!readLog().includes('Server listening on')) {
    if (server.exitCode !== null) throw new Error(`sshd has ended: ${readLog()}`);
    await sleep(20);
  }
}

async function commitFiles(root: string, repository: string, files: Readonly<Record<string, string>>): Promise<string> {
  const bare = join(root, `${repository}.git`);
  const work = join(root, 'work', repository);
  const environment = { PATH: process.env['PATH'], HOME: root, GIT_CONFIG_NOSYSTEM: '1' };
  const git = async (...args: string[]): Promise<string> =>
    (
      await run('git', ['-C', work, '-c', 'user.name=a', '-c', 'user.email=a@localhost', ...args], { env: environment })
    ).stdout.trim();
  if (!existsSync(bare)) {
    await run('git', ['init', '--quiet', '--bare', '--initial-branch=main', bare], { env: environment });
    await mkdir(work, { recursive: true });
    await git('init', '--quiet', '--initial-branch=main');
  }
  for (const [name, content] of Object.entries(files)) await writeFile(join(work, name), content);
  await git('add', '--all');
  await git('commit', '--quiet', '--message', 'change');
  await git('push', '--quiet', bare, 'main');
  return git('rev-parse', 'HEAD');
}
