// What goes into an image, hashed, and the answer to "why is it built again?".
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import { hashOf } from '../../../lib/kubernetes/index.ts';
import type { Job } from '../../objects/kinds.ts';
import { short } from '../../reconcile/outcome.ts';

/** Hash of each setting that an image is made from, by the name of its field. */
export type InputHashes = Readonly<Record<string, string>>;

/** All that decides an image besides the commit, in hashes. */
export interface BuildInputs {
  /** 16 hex digits over all of them. */
  readonly hash: string;
  readonly each: InputHashes;
}

/**
 * The pipeline's own image is left out: a new version of the platform must not build every app again at once.
 */
export function buildInputs(app: HostedApp): BuildInputs {
  const { source, build, review, run } = app.spec;
  const pinned = (app.pinned ?? []).filter((field) => /^(source|build)\.|^run\.command$/.test(field));
  const values: Record<string, unknown> = {
    'spec.source.repo': source.repo,
    'spec.source.path': source.path,
    'spec.build.strategy': build.strategy,
    'spec.build.dockerfile': build.dockerfile,
    // Only where there is one: what was built before there was such a field stays as it is.
    ...(build.target === undefined ? {} : { 'spec.build.target': build.target }),
    'spec.build.args': build.args,
    'spec.build.env': build.env,
    'spec.build.resources': build.resources,
    'spec.build.timeout': build.timeout,
    // An app without waivers has the hash that it had before there were any.
    ...(review.waivers.length === 0 ? {} : { 'spec.review.waivers': review.waivers }),
    ...(pinned.length === 0 ? {} : { [pinnedInput]: pinned }),
    'spec.run.port': run.port ?? null,
    'spec.run.command': run.command.length > 0,
    [rebuildInput]: app.metadata.annotations?.[annotations.rebuild] ?? null,
  };
  const each = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, hashOf(value).slice(0, 8)]));
  return { hash: hashOf(each), each };
}

/** An app that pins no default has the hash that it had before there were pins. */
const pinnedInput = 'spec fields set to their default';
const rebuildInput = `metadata.annotations.${annotations.rebuild}`;

/**
 * Name of the Job of a commit and its inputs: asking twice is the same Job. At most 57 characters, as app names have
 * 40.
 */
export function jobName(app: string, commit: string, hash: string): string {
  return `${app}-${short(commit)}-${hash.slice(0, 8)}`;
}

/** What a change is judged by. */
interface Comparison {
  readonly commit: string;
  readonly inputs: InputHashes;
  readonly previous: { readonly commit: string | undefined; readonly inputs: InputHashes | undefined } | undefined;
  /** Faults of the platform at this very Job so far. */
  readonly faults: number;
  readonly faultLimit: number;
}

/** Says why in a sentence, or nothing when it is not the reason. In the order in which they are reported. */
const causes: readonly ((comparison: Comparison) => string | undefined)[] = [
  ({ faults, faultLimit }) =>
    faults === 0 ? undefined : `retry after a platform fault (attempt ${faults + 1} of ${faultLimit})`,
  ({ previous }) => (previous === undefined ? 'first build' : undefined),
  ({ previous, commit }) =>
    previous?.commit === undefined || previous.commit === commit
      ? undefined
      : `new commit ${short(commit)} (was ${short(previous.commit)})`,
  (comparison) => (changed(comparison).includes(rebuildInput) ? 'rebuild requested' : undefined),
  (comparison) => {
    const fields = changed(comparison).filter((name) => name !== rebuildInput);
    return fields.length === 0 ? undefined : `changed build settings: ${fields.join(', ')}`;
  },
];

function changed({ inputs, previous }: Comparison): string[] {
  const before = previous?.inputs;
  return before === undefined ? [] : Object.keys(inputs).filter((name) => before[name] !== inputs[name]);
}

/** Why a Job is made: every cause that holds. */
export function whyBuilt(comparison: Comparison): string {
  const said = causes.flatMap((cause) => cause(comparison) ?? []);
  return said.length === 0 ? 'the previous Job no longer exists' : said.join('; ');
}

/** Inputs noted on a Job; nothing when they cannot be read. */
export function inputsOf(job: Job | undefined): InputHashes | undefined {
  const text = job?.metadata.annotations?.[annotations.inputs];
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as InputHashes) : undefined;
  } catch {
    return undefined;
  }
}
