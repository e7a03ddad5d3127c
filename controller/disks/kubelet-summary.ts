// Reads from the kubelet of a node how full its disks are.
import { z } from 'zod';
import { exchange, readText, type Connection } from '../../lib/kubernetes/index.ts';

/** Size of a file system and what is free of it, in bytes. */
export interface Space {
  readonly of: { readonly node: string; readonly filesystem: 'node' | 'images' } | { readonly claim: string };
  readonly size: number;
  readonly available: number;
}

/** Reads a node by its address. @throws ApiError when the kubelet refuses or is out of reach */
export type ReadSpaces = (address: string, signal: AbortSignal) => Promise<Space[]>;

const fileSystem = z.object({ availableBytes: z.number(), capacityBytes: z.number() });
const summary = z.object({
  node: z.object({
    nodeName: z.string(),
    fs: fileSystem.optional(),
    runtime: z.object({ imageFs: fileSystem.optional() }).optional(),
  }),
  pods: z
    .array(
      z.object({
        volume: z
          .array(
            z.object({
              availableBytes: z.number().optional(),
              capacityBytes: z.number().optional(),
              pvcRef: z.object({ name: z.string(), namespace: z.string() }).optional(),
            }),
          )
          .optional(),
      }),
    )
    .default([]),
});

/** Asks the kubelets themselves, with the right to their statistics (nodes/stats) and to nothing else. */
export function kubeletSpaces(connection: Connection, namespace: string, port: number): ReadSpaces {
  return async (address, signal) => {
    const host = address.includes(':') ? `[${address}]` : address;
    const answer = await exchange(
      { ...connection, credentials: () => connection.credentials(), server: `https://${host}:${port}` },
      {
        method: 'GET',
        path: '/stats/summary',
        headers: { accept: 'application/json', 'user-agent': 'moorage-operator' },
        body: undefined,
        signal,
      },
    );
    return parseSummary(JSON.parse(await readText(answer)), namespace);
  };
}

/** The disks of a node, and the volumes of pods there that are claimed in one namespace. */
export function parseSummary(value: unknown, namespace: string): Space[] {
  const { node, pods } = summary.parse(value);
  const { nodeName, fs, runtime } = node;
  const disks = [['node', fs] as const, ['images', runtime?.imageFs] as const].flatMap(([filesystem, space]) =>
    space === undefined
      ? []
      : [{ of: { node: nodeName, filesystem }, size: space.capacityBytes, available: space.availableBytes }],
  );
  const volumes = pods
    .flatMap(({ volume }) => volume ?? [])
    .flatMap(({ pvcRef, capacityBytes, availableBytes }) =>
      pvcRef?.namespace !== namespace || capacityBytes === undefined || availableBytes === undefined
        ? []
        : [{ of: { claim: pvcRef.name }, size: capacityBytes, available: availableBytes }],
    );
  return [...disks, ...volumes];
}
