// A registry of its own for pipeline tests, on loopback, behind a password, filled with the base images under their
// Docker Hub names.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { buildPart, getBinariesFolder } from '../../../localnode/binaries/build.ts';
import { computeImageKey } from '../../../localnode/images/build.ts';
import { images, type ImageRecipe } from '../../../localnode/images/catalog.ts';
import { ensurePackages, getUnpackedFolder } from '../../../localnode/node/daemons/packages.ts';
import { createAuthorizer } from '../../../controller/registry-proxy/account.ts';
import { createFullness, createProxy } from '../../../controller/registry-proxy/proxy.ts';
import { createLog } from '../../../lib/telemetry.ts';
import { createPushToken, type AppIdentity } from '../../../lib/app-tokens.ts';
import { run } from '../../../lib/child-process.ts';
import { runExclusively } from '../exclusively.ts';
import { paths } from '../../../localnode/paths.ts';
import { findFreePort } from '../free-port.ts';

const password = 'not-a-secret-of-anyone';
const user = 'pipeline';
/** Makes the tokens that the proxy takes. */
export const tokenSecret = 'push-token-secret-of-tests-0123456789';

export interface TestRegistry {
  /** host:port */
  readonly host: string;
  /** Folder with a config.json that may push and pull. */
  readonly dockerConfig: string;
  readonly authorization: string;
  /** The way of builds to it. */
  readonly proxy: { readonly host: string; tokenOf(app: AppIdentity): string };
  /** Root directory of what it stores. */
  readonly root: string;
  /** Runs its own garbage collection. */
  collectGarbage(): Promise<void>;
  /** Stops the server for the time of `work`, as for a collection. */
  runWhileStopped<T>(work: () => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

/** Puts the pipeline's programs on PATH, compiled from their modules when the cache lacks them. */
export async function addProgramsToPath(): Promise<void> {
  const parts = ['buildkit', 'runc', 'gitleaks'] as const;
  await runExclusively(async () => {
    await ensurePackages();
    for (const part of parts) await buildPart(part);
  });
  const path = process.env['PATH'] ?? '';
  const missing = parts.map((part) => getBinariesFolder(part)).filter((folder) => !path.split(':').includes(folder));
  process.env['PATH'] = [...missing, path].join(':');
}

/** `root`: where it stores, such as a small file system. Removed with it, but for a root that was given. */
export async function startRegistry(given?: string): Promise<TestRegistry> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-registry-'));
  const root = given ?? join(folder, 'data');
  const host = `127.0.0.1:${await findFreePort()}`;
  const users = execFileSync('htpasswd', ['-niB', user], { input: password, encoding: 'utf8' });
  await writeFile(join(folder, 'users'), users);
  await writeFile(
    join(folder, 'config.yml'),
    JSON.stringify({
      version: 0.1,
      log: { level: 'error', accesslog: { disabled: true } },
      storage: { filesystem: { rootdirectory: root }, delete: { enabled: true } },
      http: { addr: host, secret: 'x', draintimeout: '30s' },
      auth: { htpasswd: { realm: 'test', path: join(folder, 'users') } },
    }),
  );
  const auth = Buffer.from(`${user}:${password}`).toString('base64');
  const dockerConfig = join(folder, 'docker');
  await mkdir(dockerConfig);
  await writeFile(join(dockerConfig, 'config.json'), JSON.stringify({ auths: { [host]: { auth } } }));
  const program = join(getUnpackedFolder('docker-registry'), 'usr/bin/docker-registry');
  const configFile = join(folder, 'config.yml');
  const serve = async (): Promise<ChildProcess> => {
    const server = spawn(program, ['serve', configFile], { stdio: 'ignore' });
    await answering({ host, authorization: `Basic ${auth}` }, server);
    return server;
  };
  let child = await serve();
  const url = `http://${host}`;
  const server = createProxy({
    registry: url,
    authorize: createAuthorizer({ url, credentials: auth }),
    tokenSecret,
    mirrors: true,
    fullness: createFullness(),
    log: createLog('registry-proxy'),
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = z.object({ port: z.int() }).parse(server.address());
  return {
    host,
    dockerConfig,
    authorization: `Basic ${auth}`,
    root,
    collectGarbage: async () => {
      const collected = await run(program, ['garbage-collect', configFile], { env: {} });
      if (collected.code !== 0) throw new Error(collected.stderr.slice(-2000));
    },
    runWhileStopped: async (work) => {
      await endProcess(child);
      try {
        return await work();
      } finally {
        child = await serve();
      }
    },
    proxy: { host: `127.0.0.1:${port}`, tokenOf: (app) => createPushToken(app, tokenSecret) },
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await endProcess(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function answering(registry: Pick<TestRegistry, 'host' | 'authorization'>, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the registry ended with ${child.exitCode}`);
    const answer = await fetch(`http://${registry.host}/v2/`, {
      headers: { authorization: registry.authorization },
    }).catch(() => undefined);
    if (answer?.status === 200) return;
    await delay(50);
  }
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

/** The base images that plans start from on every installation. */
export const ordinaryImages = ['debian-bookworm', 'python-3.11', 'node-24', 'nginx'];

/** Pushes base images, each after those that it starts from; `build` makes those that the cache does not have. */
export async function fillRegistry(
  registry: TestRegistry,
  names: readonly string[],
  build: (context: string, args: readonly string[]) => Promise<unknown>,
): Promise<void> {
  for (const name of names) {
    const image = images.find((each) => each.name === name);
    if (image === undefined) throw new Error(`there is no image ${name} in the catalog`);
    const archive = await createArchive(image, build);
    const [tag = '', ...otherTags] = image.tags;
    execFileSync('skopeo', [
      'copy',
      '--quiet',
      '--preserve-digests',
      '--insecure-policy',
      '--dest-tls-verify=false',
      '--authfile',
      join(registry.dockerConfig, 'config.json'),
      `oci-archive:${archive}`,
      `docker://${registry.host}/${image.repository}:${tag}`,
    ]);
    await addTags(registry, image.repository, tag, otherTags);
  }
}

/** Gives a pushed image further tags. */
async function addTags(
  { host, authorization }: TestRegistry,
  repository: string,
  tag: string,
  otherTags: readonly string[],
): Promise<void> {
  const url = `http://${host}/v2/${repository}/manifests`;
  const type = 'application/vnd.oci.image.manifest.v1+json';
  const pushed = await fetch(`${url}/${tag}`, { headers: { authorization, accept: type } });
  const manifest = await pushed.arrayBuffer();
  for (const other of otherTags) {
    const headers = { authorization, 'content-type': pushed.headers.get('content-type') ?? type };
    const put = await fetch(`${url}/${other}`, { method: 'PUT', headers, body: manifest });
    if (!put.ok) throw new Error(`${repository}:${other} could not be pushed: status ${put.status}`);
  }
}

/** The archive of an image in the cache that `npm run up` uses as well. */
async function createArchive(
  image: ImageRecipe,
  build: (context: string, args: readonly string[]) => Promise<unknown>,
): Promise<string> {
  const archive = join(paths.cache, 'images', `${image.name}-${await computeImageKey(image)}.tar`);
  if (existsSync(archive)) return archive;
  await mkdir(join(paths.cache, 'images'), { recursive: true });
  const context = await mkdtemp(join(tmpdir(), 'moorage-image-'));
  await cp(join(paths.root, 'localnode', 'images', image.folder), context, { recursive: true });
  await image.fill(context);
  const draft = `${archive}.test-draft`;
  await build(context, [
    ...Object.entries(image.arguments ?? {}).flatMap(([key, value]) => ['--opt', `build-arg:${key}=${value}`]),
    '--output',
    `type=oci,dest=${draft}`,
  ]);
  await rename(draft, archive);
  await rm(context, { recursive: true, force: true });
  return archive;
}
