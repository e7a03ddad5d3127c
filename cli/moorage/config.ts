// Stores the author's keys, one per installation, in a file that only its owner can read, and decides which installation a
// command is for.
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { UsageError } from '../../lib/command-line.ts';
import { paths } from '../../localnode/paths.ts';
import { Fault, type Installation, parseJson, readInstallation } from '../submit/installation.ts';

const installation = z.strictObject({
  key: z.string().optional(),
  /** Absolute path of the certificate authority. */
  caFile: z.string().optional(),
});
export type StoredInstallation = z.output<typeof installation>;

const storedConfig = z.strictObject({
  /** Address of the last login. */
  current: z.string().optional(),
  installations: z.record(z.string(), installation).default({}),
});
type StoredConfig = z.output<typeof storedConfig>;

/** The installation that a command is for. */
export interface Target {
  /** Without a slash at the end. */
  readonly address: string;
  readonly authority: Installation['authority'];
  /** The author's key; undefined if there is none. */
  readonly key: string | undefined;
  /** What `up` wrote, if it is the cluster on this machine. */
  readonly local: Installation | undefined;
}

export class Config {
  readonly path: string;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #folder: string;
  readonly #localFolder: string;

  /** @param folder where relative paths start; @param localFolder what `up` wrote */
  constructor(environment: NodeJS.ProcessEnv, folder: string, localFolder: string = paths.local) {
    const home = environment['XDG_CONFIG_HOME'] ?? '';
    this.path = join(home === '' ? join(environment['HOME'] ?? homedir(), '.config') : home, 'moorage', 'config.json');
    this.#environment = environment;
    this.#folder = folder;
    this.#localFolder = localFolder;
  }

  /** @throws Fault if the file is damaged; the message never quotes it, because it holds keys */
  async read(): Promise<StoredConfig> {
    const text = await readFile(this.path, 'utf8').catch((error: unknown) => {
      if (readErrorCode(error) === 'ENOENT') return '{}';
      throw new Fault(`${this.path} cannot be read (${readErrorCode(error)})`);
    });
    const parsed = storedConfig.safeParse(parseJson(text));
    if (parsed.success) return parsed.data;
    throw new Fault(`${this.path} is not valid: remove it, and log in again with \`moorage login\``);
  }

  /** Changes what is stored of an installation; undefined removes it. It becomes the current one if it is kept. */
  async write(address: string, change: StoredInstallation | undefined): Promise<void> {
    const { current, installations } = await this.read();
    const others = Object.fromEntries(Object.entries(installations).filter(([known]) => known !== address));
    const isCurrent = current === address;
    const next: StoredConfig =
      change === undefined
        ? { ...(current === undefined || isCurrent ? {} : { current }), installations: others }
        : { current: address, installations: { ...others, [address]: change } };
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
    const draft = `${this.path}.${process.pid}`;
    try {
      // Another reader sees the old file or the new one, and never a part of it or one with another mode.
      await writeFile(draft, `${JSON.stringify(next, undefined, 2)}\n`, { mode: 0o600, flag: 'wx' });
      await rename(draft, this.path);
    } catch (error) {
      await rm(draft, { force: true });
      throw new Fault(`${this.path} cannot be written (${readErrorCode(error)})`);
    }
  }

  /** Decides the installation: by --api, MOORAGE_API, the last login, or the cluster on this machine. @throws UsageError */
  async resolveTarget(options: {
    readonly api?: string | undefined;
    readonly 'ca-file'?: string | undefined;
  }): Promise<Target> {
    const stored = await this.read();
    const local = await this.readLocal();
    const address = this.#chooseAddress(options.api, stored.current ?? local?.baseUrl);
    const known = stored.installations[address] ?? {};
    const here = local !== undefined && normalizeAddress(local.baseUrl) === address ? local : undefined;
    const authorityFile = options['ca-file'] ?? readVariable(this.#environment, 'MOORAGE_CA') ?? known.caFile;
    return {
      address,
      authority: authorityFile === undefined ? here?.authority : await this.#readAuthority(authorityFile),
      key: readVariable(this.#environment, 'MOORAGE_KEY') ?? known.key,
      local: here,
    };
  }

  #chooseAddress(option: string | undefined, fallback: string | undefined): string {
    const address = option ?? readVariable(this.#environment, 'MOORAGE_API') ?? fallback;
    if (address !== undefined) return normalizeAddress(address);
    throw new UsageError('which installation? Name it with --api URL, or log in once with `moorage login`');
  }

  /** The cluster on this machine, if there is one. */
  async readLocal(): Promise<Installation | undefined> {
    return existsSync(join(this.#localFolder, 'config.json')) ? readInstallation(this.#localFolder) : undefined;
  }

  async #readAuthority(file: string): Promise<Installation['authority']> {
    const path = resolve(this.#folder, file);
    const pem = await readFile(path, 'utf8').catch(() => {
      throw new UsageError(`the certificate authority ${path} cannot be read`);
    });
    return { path, pem };
  }
}

/** Such as ENOENT. The message of the error is left out: it can have more than its reader may see. */
export function readErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}

function readVariable(environment: NodeJS.ProcessEnv, name: string): string | undefined {
  const value = environment[name]?.trim() ?? '';
  return value === '' ? undefined : value;
}

/**
 * Completes and checks the address of an installation.
 *
 * @throws UsageError for what is no address, and for one over which a key would travel unencrypted
 */
export function normalizeAddress(text: string): string {
  const full = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`;
  const url = URL.canParse(full) ? new URL(full) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new UsageError('the address of the installation must be like https://moorage.example.org');
  if (url.protocol === 'http:' && !/^(?:127\.|\[::1\]|localhost$|.*\.localhost$)/.test(url.hostname))
    throw new UsageError(`use https for ${url.host}: over http, others could read your key`);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}
