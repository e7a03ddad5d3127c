// The submit endpoints of an API that runs alone: described as ever, and refused with what to do about it.
import { Registry } from 'prom-client';
import { createStore } from '../../lib/kubernetes/store.ts';
import { Problem } from '../../lib/problem.ts';
import type { Endpoint } from '../http/endpoint.ts';
import { noCluster } from '../http/problems.ts';
import { submitEndpoints } from './endpoints.ts';
import { submitMetrics } from './metrics.ts';
import { appIndex, appIndexers, type App } from '../apps/hosted-apps.ts';

export function submitWithoutCluster(baseUrl: string): Endpoint[] {
  const absent = (): Promise<never> =>
    Promise.reject(
      new Problem(
        noCluster,
        'this API runs alone, without a cluster to host apps in; `npm run up` starts one on this machine',
      ),
    );
  const described = submitEndpoints({
    apps: appIndex(createStore<App>({ indexers: appIndexers }), 'none'),
    hosts: { allowed: [], insecure: [] },
    baseUrl,
    logStreams: 1,
    submit: absent,
    openLog: absent,
    metrics: submitMetrics(new Registry()),
  });
  return described.map((endpoint) => ({ ...endpoint, problems: [noCluster], run: absent }));
}
