// Tracks what an app writes outside of its volumes, and reports what was lost when its container was replaced. The kubelet
// measures bytes; the paths stay unknown, since the platform neither runs programs in apps nor reads their files.
import type { Finding, HostedAppStatus } from '../../../crds/hosted-app.ts';
import type { Written } from '../../../crds/status.ts';
import { omitUndefined } from '../../../lib/values.ts';
import { formatTimestamp } from '../../objects/kinds.ts';
import { formatBytes } from '../../pipeline/text.ts';
import type { PodLayers, WritableLayer } from '../../space/space.ts';

/** What an app writes in its first minute are mostly caches and compiled files. */
const settledMs = 60_000;
const kibibyte = 1024;
/** Growth that may be sessions, logs and caches. Where the code is known to keep data, a page of SQLite counts. */
const leastLoss = { unknown: 1024 * kibibyte, known: 4 * kibibyte };
/** Smaller changes are not worth a write of the status. */
const worthwhile = { bytes: 64 * kibibyte, share: 0.25 };

/** Rules of findings about data that does not last. */
const dataRules: ReadonlySet<string> = new Set(['data/not-lasting', 'compose/not-lasting', 'data/too-many-volumes']);

type Findings = HostedAppStatus['findings'];

/** What a measurement is judged by. */
interface WriteContext {
  readonly findings: Findings;
  readonly now: Date;
}

type ContainerWrites = Omit<Written, 'components'>;

/**
 * Adds a measurement. Pure.
 *
 * @param layers the newest measurement of the app's ready pod; undefined: there is none
 * @param context with the names of the components, the one that answers at / first
 */
export function trackWrites(
  known: Written | undefined,
  layers: PodLayers | undefined,
  { components: [main = '', ...others], ...context }: WriteContext & { readonly components: readonly string[] },
): Written | undefined {
  if (layers === undefined) return known;
  const own = trackContainer(known === undefined ? undefined : pickMain(known), layers.get(main), context);
  if (own === undefined) return known;
  const rest = others.flatMap((name) => {
    const before = known?.components?.find((each) => each.name === name);
    const tracked = trackContainer(before, layers.get(name), context);
    return tracked === undefined ? [] : [{ ...tracked, name }];
  });
  return rest.length === 0 ? own : { ...own, components: rest };
}

function pickMain(written: Written): ContainerWrites {
  const { components: _, ...main } = written;
  return main;
}

function trackContainer(
  known: ContainerWrites | undefined,
  layer: WritableLayer | undefined,
  { findings, now }: WriteContext,
): ContainerWrites | undefined {
  if (layer === undefined) return known;
  const startedAt = formatTimestamp(new Date(layer.startedAt));
  const isSettled = now.getTime() - Date.parse(startedAt) >= settledMs;
  const base = isSettled ? { baseBytes: layer.bytes } : {};
  if (known === undefined) return { startedAt, ...base, bytes: layer.bytes };
  if (known.startedAt !== startedAt) {
    // An older container, such as that of a pod that is about to end, shows nothing new.
    if (startedAt < known.startedAt) return known;
    return omitUndefined({ startedAt, ...base, bytes: layer.bytes, lost: findLoss(known, startedAt, findings) });
  }
  if (known.baseBytes === undefined) return { ...known, ...base, bytes: layer.bytes };
  const change = Math.abs(layer.bytes - known.bytes);
  const least = findDataFinding(findings) === undefined ? worthwhile.bytes : leastLoss.known;
  return change < Math.max(least, known.bytes * worthwhile.share) ? known : { ...known, bytes: layer.bytes };
}

function findLoss({ baseBytes, bytes }: ContainerWrites, at: string, findings: Findings): Written['lost'] {
  const grown = baseBytes === undefined ? 0 : bytes - baseBytes;
  const least = findDataFinding(findings) === undefined ? leastLoss.unknown : leastLoss.known;
  return grown >= least ? { bytes: grown, at } : undefined;
}

/** What was lost, as the end of a sentence about the app. */
export function describeLoss(written: Written | undefined, findings: Findings): string | undefined {
  const loser = [written, ...(written?.components ?? [])].find((each) => each?.lost !== undefined);
  if (written === undefined || loser?.lost === undefined) return undefined;
  const { bytes, at } = loser.lost;
  const finding = findDataFinding(findings);
  const line = finding?.line === undefined ? '' : `:${finding.line}`;
  const cause = finding?.file === undefined ? '' : ` (see ${finding.file}${line})`;
  const { who, field } = nameLoser(written, loser);
  return `lost ${formatBytes(bytes)} that ${who} had written outside of a volume when it was restarted at ${at}${cause}; add the folder of such data to ${field} in moorage.yaml`;
}

function nameLoser(
  { components }: Written,
  loser: ContainerWrites & { readonly name?: string },
): { who: string; field: string } {
  const { name } = loser;
  if (name !== undefined) return { who: `its component ${name}`, field: `volumes of component ${name}` };
  return { who: 'it', field: components === undefined ? 'run.volumes' : 'volumes of the component at /' };
}

function findDataFinding(findings: Findings): Finding | undefined {
  return findings?.find(({ rule }) => dataRules.has(rule));
}
