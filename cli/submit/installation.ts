// Reads the installation that `npm run up` created (addresses, certificate authority and git password), and defines the
// faults that keep a submission from being followed to its end.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { paths } from '../../localnode/paths.ts';

const addresses = z.object({
  /** Of the API, like https://moorage.localhost */
  baseUrl: z.url(),
  /** Of the git server as seen from this machine. */
  gitUrl: z.url(),
  /** The same as seen from inside the cluster. */
  internalGitUrl: z.url(),
});

/** An installation to submit to. */
export interface Installation extends z.output<typeof addresses> {
  /** Certificate authority to trust besides the public ones; path and PEM. */
  readonly authority: { readonly path: string; readonly pem: string } | undefined;
  /** Password of the git user `moorage`; undefined if there is no git server. */
  readonly gitPassword: string | undefined;
}

/** Reads what `up` wrote. @throws Fault when there is no installation */
export async function readInstallation(folder = paths.local): Promise<Installation> {
  const config = join(folder, 'config.json');
  const text = await readOptional(config);
  if (text === undefined) throw new Fault('there is no cluster to submit to: start one with `npm run up`');
  const parsed = addresses.safeParse(parseJson(text));
  if (!parsed.success)
    throw new Fault(`${config} is invalid: run \`npm run up\` to write it again (${z.prettifyError(parsed.error)})`);
  const authority = join(folder, 'ca.crt');
  const pem = await readOptional(authority);
  const gitPassword = (await readOptional(join(folder, 'git-password')))?.trim();
  return { ...parsed.data, authority: pem === undefined ? undefined : { path: authority, pem }, gitPassword };
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new Fault(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** @returns undefined for text that is not JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** How the API refused a request. */
export interface Refusal {
  /** HTTP status. */
  readonly status: number;
  /** The body: a problem (RFC 9457) if the API itself answered; undefined for what is not JSON, like the page of a proxy. */
  readonly problem: unknown;
  /** Finds the request in the log of the API. */
  readonly requestId: string | undefined;
}

/** A fault of the command or the platform, not of the repository. The message is for a person, and says what to do. */
export class Fault extends Error {
  override readonly name: string = 'Fault';
  /** Set if the API refused a request. */
  readonly refusal: Refusal | undefined;
  constructor(
    message: string,
    { refusal, ...options }: ErrorOptions & { readonly refusal?: Refusal | undefined } = {},
  ) {
    super(message, options);
    this.refusal = refusal;
  }
}

/** The API did not answer, or asked to retry later: the same request may succeed then. */
export class Unavailable extends Fault {
  override readonly name = 'Unavailable';
  /** From Retry-After. */
  readonly retryAfterMs: number | undefined;
  constructor(
    message: string,
    { retryAfterMs, refusal }: { retryAfterMs?: number | undefined; refusal?: Refusal } = {},
  ) {
    super(message, { refusal });
    this.retryAfterMs = retryAfterMs;
  }
}

/** The log cannot be followed; the status may still be read. */
export class LogUnavailable extends Fault {
  override readonly name = 'LogUnavailable';
}
