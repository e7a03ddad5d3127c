// Finds the pods of the activator and asks them: what they have seen of the apps, and to hold what comes for one.
import { z } from 'zod';
import { activator } from '../../crds/names.ts';
import { activityReport, closeAnswer, type ActivityReport, type CloseRequest } from '../../crds/reports.ts';
import type { Client } from '../../lib/kubernetes/index.ts';
import { endpointSlices } from '../objects/kinds.ts';
import { timeLimit } from '../../lib/values.ts';

export interface ActivatorPool {
  /** What each has seen; undefined for one that does not answer. Empty: there is none. */
  reports(signal: AbortSignal): Promise<readonly (ActivityReport | undefined)[]>;
  /** True when all of them hold what comes for the app from now on. Never rejects. */
  close(request: CloseRequest): Promise<boolean>;
}

const limitMs = 2_000;

/** Asks the pods behind the activator's Service for its own port, those that are ending included. */
export function activatorPool(client: Client, namespace: string): ActivatorPool {
  /** Listed each time: one that is missing here could have a use in progress that nobody knows of. */
  async function origins(signal?: AbortSignal): Promise<string[]> {
    const labelSelector = `kubernetes.io/service-name=${activator.name}-control`;
    const found: string[] = [];
    for await (const slice of client.listAll(endpointSlices, { namespace, labelSelector, signal })) {
      const port = slice.ports?.find(({ name }) => name === 'control')?.port ?? activator.controlPort;
      for (const { addresses } of slice.endpoints ?? [])
        found.push(...addresses.map((address) => `http://${address.includes(':') ? `[${address}]` : address}:${port}`));
    }
    return [...new Set(found)];
  }

  async function closeAll(request: CloseRequest): Promise<boolean> {
    const all = await origins(timeLimit(limitMs));
    const answers = await Promise.all(
      all.map(async (origin) => {
        const answer = await ask(`${origin}/close`, closeAnswer, request).catch(() => undefined);
        return answer?.closed === true;
      }),
    );
    if (answers.length > 0 && answers.every(Boolean)) return true;
    // Those that agreed would hold on for some seconds by themselves.
    await Promise.allSettled(all.map((origin) => ask(`${origin}/open`, z.unknown(), { app: request.app })));
    return false;
  }

  return {
    async reports(signal) {
      const all = await origins(signal);
      return Promise.all(
        all.map((origin) => ask(`${origin}/activity`, activityReport, undefined, signal).catch(() => undefined)),
      );
    },
    close: (request) => closeAll(request).catch(() => false),
  };
}

async function ask<T>(url: string, answer: z.ZodType<T>, body?: object, signal?: AbortSignal): Promise<T> {
  const limit = timeLimit(limitMs);
  const response = await fetch(url, {
    signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return answer.parse(await response.json());
}
