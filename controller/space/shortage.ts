// Whether there is disk space for another build, and what is reported where there is none.
import { tightestOf, type FileSystem, type NodeDisks } from './kubelet.ts';

/** Free space that is kept: bytes, or a share of the disk between 0 and 1. */
export type Reserve = { readonly bytes: number } | { readonly share: number };

export interface SpaceReadings {
  /** By address. */
  readonly nodes: ReadonlyMap<string, NodeDisks>;
  /** `namespace/name` of the claim on which the registry stores; absent: it is elsewhere, or on the disk of a node. */
  readonly registryClaim?: string | undefined;
  /** When the registry last had no space for a push, in milliseconds since 1970; absent: it had. */
  readonly refusedAt?: number | undefined;
}

/** A registry that refused a push for lack of space is tried again by one build after this long. */
export const refusalMs = 5 * 60_000;

/**
 * Why no build may start, as a sentence with what would help; undefined where there is space, or nothing is known. With
 * several nodes there is space as long as one of them has some, since the scheduler avoids the others.
 */
export function shortageOf(readings: SpaceReadings, reserve: Reserve, now: number): string | undefined {
  return ofRegistry(readings, reserve, now) ?? ofNodes(readings, reserve);
}

function ofRegistry(
  { nodes, registryClaim, refusedAt }: SpaceReadings,
  reserve: Reserve,
  now: number,
): string | undefined {
  const disk = registryClaim === undefined ? undefined : claimOf(nodes, registryClaim);
  if (disk !== undefined && isShort(disk, reserve))
    return `the volume of the registry has ${state(disk, reserve)}. The operator of this installation can lower builds.imageLimit, have the registry collect its garbage, or enlarge the volume.`;
  if (refusedAt === undefined || now - refusedAt >= refusalMs) return undefined;
  return 'the registry had no space left for the last push. The operator of this installation can have it collect its garbage, remove images, or enlarge its disk; builds go on within 5 minutes of that.';
}

function ofNodes({ nodes }: SpaceReadings, reserve: Reserve): string | undefined {
  const tightest = [...nodes.values()].flatMap((node) => tightestOf(node) ?? []);
  const roomiest = tightest.toSorted((a, b) => b.free - a.free)[0];
  if (roomiest === undefined || tightest.some((disk) => !isShort(disk, reserve))) return undefined;
  const who = tightest.length === 1 ? 'the node has' : `none of the ${tightest.length} nodes has enough; the best has`;
  return `${who} ${state(roomiest, reserve)}. Delete apps that are no longer used, or ask the operator of this installation to enlarge the disk.`;
}

/** What the registry's volume has; undefined where no pod that is known mounts it. */
function claimOf(nodes: SpaceReadings['nodes'], name: string): FileSystem | undefined {
  return [...nodes.values()].flatMap(({ claims }) => claims.get(name) ?? [])[0];
}

function isShort(disk: FileSystem, reserve: Reserve): boolean {
  return disk.free < keptBytes(disk, reserve);
}

function keptBytes({ capacity }: FileSystem, reserve: Reserve): number {
  return 'bytes' in reserve ? reserve.bytes : capacity * reserve.share;
}

function state(disk: FileSystem, reserve: Reserve): string {
  return `${gibibytes(disk.free)} free, and ${gibibytes(keptBytes(disk, reserve))} are kept free`;
}

/** In a unit that shows a difference. */
function gibibytes(bytes: number): string {
  const gib = bytes / 1024 ** 3;
  return gib >= 1 ? `${Number(gib.toFixed(1))} GiB` : `${Math.floor(bytes / 1024 ** 2)} MiB`;
}
