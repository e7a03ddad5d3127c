// What the cluster says of a submitted app, and its removal.
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { z } from 'zod';
import { paths } from '../../../localnode/paths.ts';
import { hostedApp } from '../../../crds/hosted-app.ts';

const namespace = 'moorage-apps';
const nodes = z.looseObject({
  items: z.array(
    z.looseObject({
      status: z.looseObject({
        images: z
          // An image whose names were taken from it has null.
          .array(z.looseObject({ names: z.array(z.string()).nullish(), sizeBytes: z.number().default(0) }))
          .default([]),
      }),
    }),
  ),
});

async function kubectl(...args: readonly string[]): Promise<string> {
  const { stdout } = await execa(paths.kubectl, args, { env: { KUBECONFIG: paths.kubeconfig }, stdin: 'ignore' });
  return stdout;
}

export interface AppFacts {
  readonly plan?: string | undefined;
  readonly imageBytes?: number | undefined;
}

/** Its plan in words, and the size of its image where a node says it. */
export async function readFacts(name: string): Promise<AppFacts> {
  const app = hostedApp.parse(JSON.parse(await kubectl('get', 'happ', name, '-n', namespace, '-o', 'json')));
  const plan = app.status?.plan;
  const image = app.status?.served?.image ?? app.status?.built?.image;
  return {
    plan: plan === undefined ? undefined : [plan.strategy, plan.framework, plan.reason].filter(Boolean).join(', '),
    imageBytes: image === undefined ? undefined : await imageBytes(image),
  };
}

/** The warning of a live app, which comes a look at its page later; undefined when none has come by then. */
export async function readWarning(name: string, waitMs: number): Promise<string | undefined> {
  const until = Date.now() + waitMs;
  for (;;) {
    const app = hostedApp.parse(JSON.parse(await kubectl('get', 'happ', name, '-n', namespace, '-o', 'json')));
    if (app.status?.warning !== undefined || Date.now() > until) return app.status?.warning;
    await delay(2_000);
  }
}

async function imageBytes(image: string): Promise<number | undefined> {
  const digest = image.split('@')[1] ?? image;
  const { items } = nodes.parse(JSON.parse(await kubectl('get', 'nodes', '-o', 'json')));
  const images = items.flatMap(({ status }) => status.images);
  return images.find(({ names }) => names?.some((each) => each.includes(digest)))?.sizeBytes;
}

/** Deletes an app and waits until nothing of it is left. */
export async function deleteApp(name: string): Promise<void> {
  await kubectl('delete', 'happ', name, '-n', namespace, '--ignore-not-found', '--timeout=180s');
}
