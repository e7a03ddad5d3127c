// The enforcer follows a real API server and CNI records into a real kernel, through restarts and meddling.
import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { afterAll, beforeAll, test } from 'vitest';
import { createApplier, createNftRunner } from '../../../../localnode/network-policy/tables/apply.ts';
import { readAttachments } from '../../../../localnode/network-policy/objects/endpoints.ts';
import { createEnforcer, createSources, type EnforcerStatus } from '../../../../localnode/network-policy/enforcer.ts';
import { runEnforcer } from '../../../../localnode/network-policy/run.ts';
import {
  createClient,
  createEventRecorder,
  readFileConnection,
  silentLogger,
} from '../../../../lib/kubernetes/index.ts';
import { startApiServer, type ApiServer } from '../../../support/kubernetes/api-server.ts';
import { runExclusively } from '../../../support/exclusively.ts';
import { installTools, openLab, type Lab, type PodHost } from '../../../support/network-policy/lab.ts';

/** The test needs root on Linux. */
const skip = process.platform !== 'linux' || process.getuid?.() !== 0;
const SCOPE = { table: 'moorage-policy', bridge: 'moorage0', podCidr: '10.244.0.0/16' };

let lab: Lab;
let api: ApiServer;
let records: string;
let start: () => Promise<{ close: () => Promise<void>; run: (signal: AbortSignal) => Promise<void> }>;
const statuses: EnforcerStatus[] = [];
const forgotten: string[] = [];
const pod = (index: number): PodHost => lab.pods[index] ?? assert.fail(`no pod ${index}`);

beforeAll(async () => {
  if (skip) return;
  await runExclusively(installTools);
  lab = await openLab(['10.244.0.2', '10.244.0.3']);
  await Promise.all(lab.pods.map(async (host) => host.ask({ op: 'listen', ports: [1] })));
  records = await mkdtemp(join(tmpdir(), 'moorage-cni-'));
  api = await startApiServer();
  start = async () => {
    const client = createClient(await readFileConnection(api.kubeconfig));
    const sources = createSources(client, silentLogger);
    const applier = createApplier(createNftRunner(lab.nft));
    const enforcer = createEnforcer({
      scope: SCOPE,
      sources,
      applier,
      log: silentLogger,
      recorder: createEventRecorder({ client, controller: 'moorage.dev/network-policy' }),
      readAttachments: async () => readAttachments(records, SCOPE.bridge, async () => Promise.resolve(SCOPE.bridge)),
      forgetFlows: async (address) => {
        forgotten.push(address);
        return Promise.resolve();
      },
      writeStatus: async (status) => {
        statuses.push(status);
        return Promise.resolve();
      },
    });
    const rulesExist = async (): Promise<boolean> => Promise.resolve(true);
    const prepareKernel = async (): Promise<void> => lab.node.sysctl('net.bridge.bridge-nf-call-iptables=1');
    const run = async (signal: AbortSignal): Promise<void> => {
      await runEnforcer(
        { enforcer, applier, sources, records, hasRules: rulesExist, prepareKernel, restoreMs: 500, log: silentLogger },
        signal,
      );
      client.close();
    };
    return { close: async () => enforcer.close(), run };
  };
});
afterAll(async () => {
  if (skip) return;
  await api.stop();
  await lab.close();
  await rm(records, { recursive: true });
});

async function reaches(): Promise<boolean> {
  return (await pod(0).ask({ op: 'tcp', host: pod(1).address, port: 1, from: '', waitMs: 400 })) === 'open';
}

/** Waits for what must come about; that it never does is the runner's time limit. */
async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await what())) await sleep(50);
}

/** What the CNI library leaves once a pod is attached. */
async function attach(index: number): Promise<void> {
  const { port, mac, address } = pod(index);
  const uid = await api.kubectl('get', 'pod', `pod${index}`, '-o', 'jsonpath={.metadata.uid}');
  const result = {
    interfaces: [{ name: SCOPE.bridge }, { name: port }, { name: 'eth0', mac, sandbox: 'n' }],
    ips: [{ address: `${address}/24`, interface: 2 }],
  };
  const cniArgs = [
    ['K8S_POD_NAMESPACE', 'default'],
    ['K8S_POD_NAME', `pod${index}`],
    ['K8S_POD_UID', uid.trim()],
  ];
  const draft = `${records}-draft`;
  await writeFile(draft, JSON.stringify({ cniArgs, result }));
  await rename(draft, join(records, `moorage-${index}-eth0`));
}

async function create(object: object): Promise<void> {
  const file = `${records}-object.json`;
  await writeFile(file, JSON.stringify(object));
  await api.kubectl('apply', '-f', file);
  await rm(file);
}
const podObject = (index: number): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `pod${index}`, namespace: 'default', labels: { app: `pod${index}` } },
  spec: { containers: [{ name: 'main', image: 'none' }] },
});

test(
  'blocks all traffic until the pods are known, then follows policies, labels, restarts and a flushed table',
  { skip, timeout: 120_000 },
  async () => {
    assert.equal(await reaches(), true, 'without rules');
    const end = new AbortController();
    const enforcer = await start();
    await enforcer.close();
    assert.equal(await reaches(), false, 'closed');
    const running = enforcer.run(end.signal);

    await create(podObject(0));
    await create(podObject(1));
    await attach(0);
    await attach(1);
    await until(reaches);

    const rule = { from: [{ podSelector: { matchLabels: { friend: 'yes' } } }] };
    await create({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'friends', namespace: 'default' },
      spec: { podSelector: {}, ingress: [rule] },
    });
    await until(async () => !(await reaches()));
    await api.kubectl('label', 'pod', 'pod0', 'friend=yes');
    await until(reaches);

    await api.restart();
    assert.equal(await reaches(), true, 'rules stay while the API server is away');
    await api.kubectl('label', 'pod', 'pod0', 'friend-');
    await until(async () => !(await reaches()));

    await execa('ip', ['netns', 'exec', lab.node.name, 'nft', 'flush', 'ruleset']);
    await until(async () => !(await reaches()));

    await rm(join(records, 'moorage-1-eth0'));
    await until(() => forgotten.includes(pod(1).address));
    end.abort();
    await running;
    assert.equal(await reaches(), false, 'rules stay when the enforcer has ended');
    const last = statuses.at(-1);
    assert.deepEqual([last?.state, last?.pods, last?.policies, last?.sourceGuard], ['enforcing', 1, 1, true]);
  },
);
