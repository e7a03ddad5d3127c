// One repository of an app in the registry, as the operator reaches it: through the registry proxy, with a token that
// lists and removes and can neither push nor read a layer.
import { z } from 'zod';
import { timeLimit } from '../../../lib/values.ts';

export interface Repository {
  /** All of its tags; none where there is no such repository. */
  tags(): Promise<string[]>;
  /** What a tag names; undefined when it is gone. */
  manifest(tag: string): Promise<StoredManifest | undefined>;
  /** Removes a manifest by its digest, with all its tags. One that is gone already is no error. */
  remove(digest: string): Promise<void>;
}

export interface StoredManifest {
  readonly digest: string;
  /** Bytes of each blob that it refers to, and its own. */
  readonly blobs: ReadonlyMap<string, number>;
}

/** The registry does not remove manifests, or not for this account. */
export class RemovalRefused extends Error {
  override readonly name = 'RemovalRefused';
}

const tagList = z.object({ tags: z.array(z.string()).nullish() });
const descriptor = z.object({ digest: z.string(), size: z.int().min(0) });
/** Programs in Go write an empty list as null: an image FROM scratch may have no layer. */
const descriptors = z
  .array(descriptor)
  .nullish()
  .transform((list) => list ?? []);
const manifest = z.object({ config: descriptor.optional(), layers: descriptors, manifests: descriptors });
const accept = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ');

const askMilliseconds = 30_000;
const maximumPages = 100;

/** @param url of the registry proxy, without a path. Its methods throw where the registry cannot be asked. */
export function openRepository(url: string, name: string, token: string, signal?: AbortSignal): Repository {
  const authorization = `Basic ${Buffer.from(`operator:${token}`).toString('base64')}`;
  const ask = async (method: string, path: string): Promise<Response> => {
    const ended = timeLimit(askMilliseconds);
    return await fetch(new URL(path, url), {
      method,
      headers: { authorization, accept },
      signal: signal === undefined ? ended : AbortSignal.any([signal, ended]),
    });
  };
  const refused = async (what: string, answer: Response): Promise<Error> =>
    new Error(
      `${what} of ${name}: the registry answered ${answer.status} ${(await answer.text()).slice(0, 200).trim()}`,
    );

  return {
    async tags() {
      const all: string[] = [];
      let path: string | undefined = `/v2/${name}/tags/list`;
      for (let page = 0; path !== undefined && page < maximumPages; page += 1) {
        const answer = await ask('GET', path);
        if (answer.status === 404) break;
        if (!answer.ok) throw await refused('the tags', answer);
        all.push(...(tagList.parse(await answer.json()).tags ?? []));
        path = /<([^>]+)>;\s*rel="?next"?/.exec(answer.headers.get('link') ?? '')?.[1];
      }
      return all;
    },
    async manifest(tag) {
      const answer = await ask('GET', `/v2/${name}/manifests/${tag}`);
      if (answer.status === 404) return undefined;
      if (!answer.ok) throw await refused(`the manifest ${tag}`, answer);
      const digest = answer.headers.get('docker-content-digest');
      const text = await answer.text();
      if (digest === null) throw new Error(`the manifest ${tag} of ${name}: the registry did not say its digest`);
      const { config, layers, manifests } = manifest.parse(JSON.parse(text));
      const blobs = [...(config === undefined ? [] : [config]), ...layers, ...manifests];
      return {
        digest,
        blobs: new Map([[digest, Buffer.byteLength(text)], ...blobs.map((each) => [each.digest, each.size] as const)]),
      };
    },
    async remove(digest) {
      const answer = await ask('DELETE', `/v2/${name}/manifests/${digest}`);
      if (answer.ok || answer.status === 404) {
        await answer.body?.cancel();
        return;
      }
      const error = await refused(`removing ${digest}`, answer);
      throw [403, 405].includes(answer.status) ? new RemovalRefused(error.message) : error;
    },
  };
}
