// Follows apps until each is live or rejected, and says each change of phase as it comes.
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { hostedApp, type HostedApp } from '../../crds/hosted-app.ts';
import { publicStatus, type PublicStatus } from '../../crds/public-status.ts';
import type { Kubectl } from '../../localnode/kubectl.ts';

const list = z.object({ items: z.array(hostedApp) });

/** An app at the end. */
export interface Outcome {
  readonly slug: string;
  readonly status: PublicStatus;
}

export interface FollowOptions {
  readonly kubectl: Kubectl;
  readonly namespace: string;
  readonly say: (line: string) => void;
  readonly lookMs?: number;
}

/** Resolves when nothing of these apps is in progress. */
export async function follow(slugs: readonly string[], options: FollowOptions): Promise<Outcome[]> {
  const { kubectl, namespace, say, lookMs = 2_000 } = options;
  const shown = new Map<string, string>();
  for (;;) {
    const { items } = list.parse(
      JSON.parse(await kubectl(['-n', namespace, 'get', 'hostedapps', '-o', 'json'])) as unknown,
    );
    const apps = items.filter(({ metadata }) => slugs.includes(metadata.name));
    for (const app of apps) {
      const word = wordOf(app);
      if (shown.get(app.metadata.name) !== word) say(`${app.metadata.name.padEnd(20)} ${word}`);
      shown.set(app.metadata.name, word);
    }
    const outcomes = apps.map((app) => ({ slug: app.metadata.name, status: publicStatus(app) }));
    if (outcomes.length === slugs.length && apps.every(isReflected) && outcomes.every(isOver)) return outcomes;
    await delay(lookMs);
  }
}

/** Whether its status is about its spec, and not about one before. */
function isReflected({ metadata, status }: HostedApp): boolean {
  return status?.observedGeneration === metadata.generation;
}

function isOver({ status }: Outcome): boolean {
  return status.status === 'rejected' || (status.status === 'live' && status.update === undefined);
}

function wordOf(app: HostedApp): string {
  const status = publicStatus(app);
  if (status.status === 'in_pipeline') return status.stage;
  return status.status === 'live' && status.update !== undefined
    ? `live, update: ${status.update.stage}`
    : status.status;
}
