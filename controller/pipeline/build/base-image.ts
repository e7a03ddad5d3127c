// Judges a base image that could not be had: misspelt, closed off here, or out of reach for now.
import type { Finding } from '../../../crds/hosted-app.ts';
import { DoubtfulFault, Fault } from '../outcome.ts';
import { defaultNode, images } from '../plan/recipe.ts';
import { head } from '../text.ts';
import { registryHost } from './daemon-config.ts';
import { positionOf, type FailedBuild } from './failed-build.ts';

const unresolved =
  /(?:failed to resolve source metadata for|source docker-image:\/\/) ?([^\s:"]+(?::\d+\/[^\s:"]+)?(?::[^\s:"]+)?(?:@sha256:[0-9a-f]{64})?)"?:? (.*)$/;
const unavailable =
  /dial tcp|i\/o timeout|no such host|connection re(?:fused|set)|TLS handshake|EOF|unexpected status[^\n]{0,200}: 5\d\d|too many ?requests|429/i;
const absent =
  /not found|pull access denied|insufficient_scope|authorization failed|unauthorized|not a valid|no match for platform|manifest unknown|failed to authorize/i;

/** Images that are always there, by the name that is asked for. */
const alwaysThere: Readonly<Record<string, readonly string[]>> = {
  python: images.python.slice(0, 2).map((each) => each.image),
  node: [defaultNode],
  nginx: [images.nginx],
};

/** What the author can do in its place. */
function otherwise(name: string): string {
  const repository = /^docker\.io\/library\/([^:@/]{1,100})/.exec(name)?.[1] ?? '';
  const alike = (Object.hasOwn(alwaysThere, repository) ? alwaysThere[repository] : undefined) ?? [images.debian];
  const named = alike.length === 1 ? `${alike.join('')} is` : `${alike.join(' and ')} are`;
  return `${named} always available. For a language that Moorage plans, build.strategy in moorage.yaml (such as python or node) builds the image without this Dockerfile.`;
}

/** An image named in FROM that cannot be had. @returns undefined when that is not what stopped the build. */
export function judgeBaseImage(error: string, build: FailedBuild): Finding | Fault | undefined {
  const [, name, why] = unresolved.exec(error) ?? [];
  if (name === undefined || why === undefined) return undefined;
  const rule = { rule: 'build/base-image', severity: 'error', ...positionOf(build, lineOfImage(build, name)) } as const;
  const isMirrored = build.mirrored?.includes(registryHost(name)) === true;
  const closed = closedImage(name, isMirrored ? '' : why, error);
  if (closed !== undefined) return { ...rule, ...closed };
  if (isMirrored || absent.test(why)) return { ...rule, ...absentImage(name, isMirrored) };
  return unavailable.test(why) ? unavailableImage(build, name, why, rule) : undefined;
}

function absentImage(name: string, isMirrored: boolean): Pick<Finding, 'message' | 'fix'> {
  return {
    message: `The base image ${name} cannot be found${isMirrored ? missed(registryHost(name)) : ''}.`,
    fix: `Check the name and tag in FROM: the image must be public and available for this CPU architecture. ${otherwise(name)}`,
  };
}

function missed(host: string): string {
  const registry = host === 'docker.io' ? 'Docker Hub' : host;
  return `: neither this installation's mirror of ${registry} nor ${registry} itself, as far as it can be reached from here, has it`;
}

/** A registry of the author's can be out of reach whenever he likes; Docker Hub and those of our plans cannot. */
function unavailableImage(
  build: FailedBuild,
  name: string,
  why: string,
  rule: Pick<Finding, 'rule' | 'severity'>,
): Finding | Fault {
  const fault = `the base image ${name} could not be fetched: ${head(why, 300)}`;
  if (build.authored === undefined || name.startsWith('docker.io/')) return new Fault(fault);
  if (build.doubted !== true) return new DoubtfulFault(fault);
  return {
    ...rule,
    message: `The base image ${name} could not be fetched, also when tried again: ${head(why, 300)}`,
    fix: `Wait until its registry can be reached and submit the repository again, or use another image in FROM. ${otherwise(name)}`,
  };
}

/**
 * Images that no other try brings: of other apps, or of a registry whose name has no address, which is misspelt or
 * closed off here for good.
 */
function closedImage(name: string, why: string, error: string): Pick<Finding, 'message' | 'fix'> | undefined {
  if (/denied by policy|not allowed by policy|source "?docker-image.*denied/i.test(error)) {
    return {
      message: `The base image ${name} cannot be used.`,
      fix: 'Use a public base image; images of other apps are not accessible.',
    };
  }
  const host = registryHost(name);
  if (host === 'docker.io' || !why.includes('no such host')) return undefined;
  return {
    message: `The base image ${name} cannot be pulled: no registry was found at ${host}.`,
    fix: `Check the registry in FROM. If it is correct, this installation cannot reach it; only the operator of this installation can change that. ${otherwise(name)}`,
  };
}

function lineOfImage(build: FailedBuild, name: string): number | undefined {
  const short = name
    .replace(/^docker\.io\/(?:library\/)?/, '')
    .replace(/@sha256:.*$/, '')
    .replace(/:latest$/, '');
  const index = build.dockerfile
    .split('\n')
    .findIndex((line) => /^\s*(?:FROM|COPY|RUN)\b/i.test(line) && line.includes(short));
  return index < 0 ? undefined : index + 1;
}
