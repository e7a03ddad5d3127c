// Something of everything that an installation does, so that its metrics have series.
import { pods } from '../../../controller/objects/kinds.ts';
import { annotations } from '../../../crds/names.ts';
import { applyStatus } from '../../../lib/kubernetes/index.ts';
import {
  acceptRoute,
  buildWell,
  createCloneEnd,
  awaitDeployment,
  createEndedContainer,
  failJob,
  formatImage,
  rollOut,
  awaitStartedJob,
  startJob,
  writePod,
} from '../operator/stand-in.ts';
import { listAll, waitFor } from '../operator/world.ts';
import { unbilled, type Lab } from './lab.ts';

const finding = {
  rule: 'secrets/aws-access-token',
  severity: 'error',
  file: 'app.py',
  line: 7,
  message: 'An AWS key.',
  fix: 'Remove it and revoke it.',
};

/** One app goes live, one is rejected, one fails by a fault of the platform. */
export async function buildApps(lab: Pick<Lab, 'world'>): Promise<void> {
  await goLive(lab, 'live');
  await reject(lab, 'rejected');
  await faultBuild(lab, 'faulted');
}

/** An app that is built, runs and is routed. */
export async function goLive({ world }: Pick<Lab, 'world'>, name: string): Promise<void> {
  const { client } = world;
  await world.submit(name);
  const commit = await waitFor('the commit', async () => (await world.app(name))?.status?.source?.commit);
  const job = await awaitStartedJob(world, name);
  await buildWell(client, job, commit, formatImage(job, 'a'));
  await rollOut(client, await awaitDeployment(world, name, formatImage(job, 'a')));
  await scheduleOnNode(world);
  await acceptRoute(world, name);
  await waitFor(`${name} to be live`, async () => (await world.app(name))?.status?.phase === 'Live');
}

/** An app that the review refuses. */
export async function reject(lab: Pick<Lab, 'world'>, name: string): Promise<void> {
  await lab.world.submit(name);
  await rejectStarted(lab, name);
}

/** The build of an app, once it is started, ends by a rejection. */
export async function rejectStarted({ world }: Pick<Lab, 'world'>, name: string): Promise<void> {
  const job = await awaitStartedJob(world, name);
  const commit = job.metadata.annotations?.[annotations.commit] ?? '';
  await startJob(world.client, job);
  const containers = [
    createCloneEnd(commit),
    createEndedContainer('review', 42, { rejected: true, findings: [finding] }),
  ];
  await writePod(world.client, job, containers, 'Failed');
  await failJob(world.client, job, 'PodFailurePolicy');
  await waitFor(`the rejection of ${name}`, async () => (await world.app(name))?.status?.phase === 'Rejected');
}

/** A build that ends by a fault of the platform. */
export async function faultBuild({ world }: Pick<Lab, 'world'>, name: string): Promise<void> {
  await world.submit(name);
  const job = await awaitStartedJob(world, name);
  await startJob(world.client, job);
  await failJob(world.client, job, 'BackoffLimitExceeded');
  await waitFor('the fault', async () => (await world.app(name))?.status?.history?.[0]?.result === 'Faulted');
}

/** Pods of apps are on the one node, as a scheduler and a kubelet would have it. */
async function scheduleOnNode(world: Lab['world']): Promise<void> {
  for (const { metadata } of await listAll(world.client, pods, 'moorage-apps'))
    await applyStatus(
      world.client,
      pods,
      metadata,
      { hostIP: '127.0.0.1', hostIPs: [{ ip: '127.0.0.1' }] },
      { fieldManager: 'stand-in-kubelet' },
    );
}

/** Calls of each kind, as somebody at this address. */
export async function makeCalls({ url, world }: Lab, address = '203.0.113.7'): Promise<void> {
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': address };
  const get = async (path: string): Promise<number> => finished(fetch(`${url}${path}`, { headers }));
  const post = async (path: string, body: unknown): Promise<number> =>
    finished(fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) }));
  await Promise.all([
    get('/api/models'),
    get('/api/projects'),
    get('/api/submit-status/owner/nothing'),
    get('/t/render_diagram?kind=d2&source=a->b'),
    get(`/t/validate_json?${new URLSearchParams({ data: '{"a":1}', schema: '{"type":"object"}' }).toString()}`),
    get('/t/fetch_page?url=http://127.0.0.1/'),
    get('/api/projects/live/call/'),
    ask({ url }, 'What is a moorage?', address),
    ask({ url }, unbilled, address),
    post('/t/render_diagram', { kind: 'mermaid', source: 'graph TD; a-->b' }),
    post('/api/submit', { repo: world.git.url }),
  ]);
}

/** Visits of an app through the gateway, a wake, and what its container used. */
export async function useApps({ gatewaySide, internal }: Pick<Lab, 'gatewaySide' | 'internal'>): Promise<void> {
  gatewaySide.visit('live', 20);
  await gatewaySide.wake();
  const sample = {
    container: 'live/app/0',
    app: 'live',
    started_at: started.toISOString(),
    at: new Date().toISOString(),
    cpu_us: (Date.now() - started.getTime()) * 100,
    memory_bytes: 64 * 2 ** 20,
  };
  await finished(
    fetch(`${internal.url}/compute`, {
      method: 'POST',
      headers: { authorization: `Bearer ${internal.token}` },
      body: JSON.stringify({ samples: [sample] }),
    }),
  );
}

const started = new Date();

/** Asks a model as somebody at this address. @returns the status */
export async function ask({ url }: Pick<Lab, 'url'>, prompt: string, address = '203.0.113.8'): Promise<number> {
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': address };
  return finished(fetch(`${url}/api/ask`, { method: 'POST', headers, body: JSON.stringify({ prompt }) }));
}

/** Asks until a quota is used up: that of the address, or that of everyone. */
export async function useUpQuota(lab: Pick<Lab, 'url'>): Promise<void> {
  for (let asked = 0; asked < 500; asked += 4) {
    const statuses = await Promise.all(Array.from({ length: 4 }, () => ask(lab, 'Again.')));
    if (statuses.includes(402)) return;
  }
  throw new Error('the quota does not end');
}

async function finished(response: Promise<Response>): Promise<number> {
  const answer = await response;
  await answer.arrayBuffer();
  return answer.status;
}
