// Finds the images of a Dockerfile that the installation makes on first use and has not made yet.
import type { PipelineInput } from '../contract.ts';
import { parseInstructions } from '../plan/dockerfile/text.ts';
import { parseRegistryHost, requestRegistry } from './buildkit.ts';

const requestMs = 10_000;

/**
 * Returns the images that this Dockerfile needs and that the mirror does not have, of those that the installation makes
 * on first use. A mirror that does not respond has all of them: the build then says what is wrong with it.
 */
export async function findUnpreparedImages(
  input: PipelineInput,
  dockerfile: string,
  token: string | undefined,
): Promise<string[]> {
  const madeOnDemand = new Set(input.imagesOnDemand ?? []);
  const needed = listBaseImages(dockerfile, input.build).filter((image) => madeOnDemand.has(image));
  const isAbsent = await Promise.all(needed.map((image) => isImageMissing(input, image, token)));
  return needed.filter((_, index) => isAbsent[index]);
}

/**
 * Lists the images that a Dockerfile starts from or copies from, by the names that FROM has for them: golang:latest for
 * docker.io/library/golang. An argument without a value leaves a name that no registry has.
 */
export function listBaseImages(dockerfile: string, build: Pick<PipelineInput['build'], 'args'>): string[] {
  const given = new Map(build.args.map(({ name, value }) => [name, value]));
  const defaults = new Map<string, string>();
  const stages = new Set(['scratch']);
  const images = new Set<string>();
  const add = (reference: string): void => {
    const name = fillIn(reference, new Map([...defaults, ...given]));
    if (!stages.has(name.toLowerCase()) && !/^\d+$/.test(name)) images.add(normalizeName(name));
  };
  for (const [word, rest] of parseInstructions(dockerfile)) {
    if (word === 'ARG' && images.size === 0) readDefaults(rest, defaults);
    if (word === 'COPY' || word === 'RUN') for (const source of listSources(rest)) add(source);
    if (word !== 'FROM') continue;
    const [from = '', as = '', name = ''] = rest.split(/\s+/).filter((each) => each !== '' && !each.startsWith('--'));
    add(from);
    if (as.toUpperCase() === 'AS') stages.add(name.toLowerCase());
  }
  return [...images];
}

/** The images and stages of COPY --from=IMAGE and RUN --mount=type=bind,from=IMAGE. */
function listSources(rest: string): string[] {
  const flags = rest.split(/\s+/, 30).filter((each) => /^--(?:from|mount)=/.test(each));
  return flags.flatMap((flag) => /(?:^--|,|=)from=([^,\s]{1,300})/.exec(flag)?.[1] ?? []);
}

function readDefaults(rest: string, defaults: Map<string, string>): void {
  for (const [, name = '', quoted, plain] of rest.matchAll(/([A-Za-z_]\w{0,100})=(?:"([^"]{0,300})"|(\S{0,300}))/g))
    defaults.set(name, quoted ?? plain ?? '');
}

function fillIn(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(
    /\$(?:([A-Za-z_]\w{0,100})|\{([A-Za-z_]\w{0,100})(?::-([^}]{0,300}))?\})/g,
    (_, plain: string | undefined, braced: string | undefined, otherwise: string | undefined) =>
      values.get(plain ?? braced ?? '') ?? otherwise ?? '',
  );
}

function normalizeName(reference: string): string {
  const name = reference.replace(/@sha256:.*$/, '').replace(/^(?:index\.)?docker\.io\/(?:library\/)?/, '');
  return /:[^/]+$/.test(name) ? name : `${name}:latest`;
}

/** Returns whether the mirror, which has the images of every registry under their own paths, says that it has none. */
async function isImageMissing(
  { mirror, plainHosts }: PipelineInput,
  image: string,
  token: string | undefined,
): Promise<boolean> {
  if (mirror === undefined) return false;
  const host = parseRegistryHost(image);
  const [path = '', tag = ''] = (host === 'docker.io' ? image : image.slice(host.length + 1)).split(':');
  const repository = host === 'docker.io' && !path.includes('/') ? `library/${path}` : path;
  try {
    const answer = await requestRegistry(plainHosts, { host: mirror, repository, tag }, token, {
      method: 'HEAD',
      accept: 'application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json',
      timeoutMs: requestMs,
    });
    return answer.status === 404;
  } catch {
    return false;
  }
}
