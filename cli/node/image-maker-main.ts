// Runs what the one-machine node makes for apps when they need it: looks every two seconds for apps that wait for an image, and
// for domains that wait for a certificate.
import { setTimeout as delay } from 'node:timers/promises';
import { annotations } from '../../crds/names.ts';
import { status } from '../../crds/status.ts';
import { hostedApps, type HostedAppObject } from '../../controller/objects/kinds.ts';
import { readPreparedImages } from '../../controller/steps/prepared-images.ts';
import { createClient, readFileConnection } from '../../lib/kubernetes/index.ts';
import { createLog } from '../../lib/telemetry.ts';
import { ensureImage, stopBuildkit } from '../../localnode/images/build.ts';
import type { ImageRecipe } from '../../localnode/images/catalog.ts';
import { findDigest } from '../../localnode/node/registry/registry.ts';
import { paths } from '../../localnode/paths.ts';
import { lock, waitForLock } from '../lock.ts';
import { issueDomainCertificates } from './domain-issuer.ts';
import { ImageMaker, listWithBases } from './image-maker.ts';

const everyMs = 2_000;
const log = createLog('image-maker');
const ending = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => {
    ending.abort();
  });
const client = createClient(await readFileConnection(paths.kubeconfig), { userAgent: 'moorage-image-maker' });

/** With the lock of `up`, which uses the same builder. */
async function makeImage(image: ImageRecipe, report: (text: string) => void): Promise<string> {
  const begun = performance.now();
  return waitForLock(lock, async () => {
    try {
      for (const each of listWithBases(image)) await ensureImage(each, report);
      const digest = await findDigest(image.repository, image.tags[0] ?? 'latest');
      if (digest === undefined) throw new Error('the registry does not have it after it was pushed');
      log.info({ image: image.name, seconds: Math.round((performance.now() - begun) / 1000) }, 'made an image');
      return digest;
    } finally {
      await stopBuildkit();
    }
  });
}

const maker = new ImageMaker({ make: makeImage });

async function answerApp(app: HostedAppObject): Promise<void> {
  const needed = status.shape.neededImages.safeParse(app.status?.neededImages).data ?? [];
  if (needed.length === 0) return;
  const current = app.metadata.annotations?.[annotations.preparedImages];
  const answer = JSON.stringify(maker.answer({ needed, reports: readPreparedImages(app) }));
  if (answer === current) return;
  const { name, namespace } = app.metadata;
  const patch = { metadata: { annotations: { [annotations.preparedImages]: answer } } };
  await client.patch(hostedApps, { name, namespace }, patch, { type: 'application/merge-patch+json' });
}

while (!ending.signal.aborted) {
  try {
    for await (const app of client.listAll(hostedApps)) await answerApp(app);
  } catch (error) {
    log.warn({ error: error instanceof Error ? error.message : String(error) }, 'could not answer the apps');
  }
  try {
    for (const domain of await issueDomainCertificates(client)) log.info({ domain }, 'signed a certificate');
  } catch (error) {
    log.warn({ error: error instanceof Error ? error.message : String(error) }, 'could not sign certificates');
  }
  await delay(everyMs, undefined, { signal: ending.signal }).catch(() => undefined);
}
process.exit(0);
