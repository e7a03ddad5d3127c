// Reads what the CNI plugins recorded for each pod: its bridge port, MAC and address, before any container of it runs.
import { readFile, readdir, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import type { Attachment } from './endpoints.ts';

const recordSchema = z.object({
  cniArgs: z.array(z.tuple([z.string(), z.string()])).nullish(),
  result: z.object({
    interfaces: z
      .array(z.object({ name: z.string(), mac: z.string().optional(), sandbox: z.string().optional() }))
      .default([]),
    ips: z.array(z.object({ address: z.string(), interface: z.number().int().optional() })).default([]),
  }),
});

/** Names the bridge that a network interface is a port of. */
export type BridgeOf = (port: string) => Promise<string | undefined>;

/** Asks the kernel. */
export const bridgeOf: BridgeOf = async (port) => {
  try {
    return basename(await readlink(`/sys/class/net/${port}/master`));
  } catch {
    return undefined;
  }
};

/** The attachments, and the records that could not be read: half written, or not of the expected shape. */
export interface AttachmentReading {
  attachments: readonly Attachment[];
  unreadable: readonly string[];
}

/**
 * Reads the records in the CNI library's cache directory. Those of other networks, and of pods whose cable no longer exists, are
 * left out. `undefined` when there is no such directory.
 */
export async function readAttachments(
  directory: string,
  bridge: string,
  master: BridgeOf = bridgeOf,
): Promise<AttachmentReading | undefined> {
  const names = await readdir(directory).catch(() => undefined);
  if (names === undefined) return undefined;
  const attachments: Attachment[] = [];
  const unreadable: string[] = [];
  for (const name of names.sort()) {
    const record = await readRecord(join(directory, name));
    if (record === 'unreadable') unreadable.push(name);
    else if (record !== 'gone') attachments.push(...(await attached(toAttachments(record, bridge), bridge, master)));
  }
  return { attachments, unreadable };
}

type CniRecord = z.output<typeof recordSchema>;

async function readRecord(path: string): Promise<CniRecord | 'unreadable' | 'gone'> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return 'gone';
  try {
    return recordSchema.parse(JSON.parse(text));
  } catch {
    return 'unreadable';
  }
}

async function attached(candidates: readonly Attachment[], bridge: string, master: BridgeOf): Promise<Attachment[]> {
  const found: Attachment[] = [];
  for (const candidate of candidates) if ((await master(candidate.port)) === bridge) found.push(candidate);
  return found;
}

function toAttachments({ cniArgs, result }: CniRecord, bridge: string): Attachment[] {
  const args = new Map(cniArgs ?? []);
  const owner = {
    namespace: args.get('K8S_POD_NAMESPACE'),
    name: args.get('K8S_POD_NAME'),
    uid: args.get('K8S_POD_UID'),
  };
  const onHost = result.interfaces.filter((each) => !each.sandbox);
  const port = onHost.find((each) => each.name !== bridge)?.name;
  if (port === undefined || !onHost.some((each) => each.name === bridge)) return [];
  return result.ips.flatMap(({ address, interface: index }) => {
    const mac = result.interfaces[index ?? -1]?.mac;
    const ip = address.split('/')[0];
    if (!isComplete(owner) || mac === undefined || ip === undefined || ip.includes(':')) return [];
    return [{ ...owner, port, mac: mac.toLowerCase(), address: ip }];
  });
}

function isComplete(
  owner: Record<'namespace' | 'name' | 'uid', string | undefined>,
): owner is Record<'namespace' | 'name' | 'uid', string> {
  return owner.namespace !== undefined && owner.name !== undefined && owner.uid !== undefined;
}
