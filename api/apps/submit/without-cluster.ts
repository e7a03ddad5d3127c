// The submit endpoints of an API without a cluster: documented as usual, and refused with what to do about it.
import { Registry } from 'prom-client';
import { createStore } from '../../../lib/kubernetes/index.ts';
import { Problem } from '../../../lib/problem.ts';
import type { Endpoint } from '../../http/index.ts';
import { noCluster } from './problems.ts';
import { submitEndpoints } from './endpoints.ts';
import { submitMetrics } from './metrics.ts';
import { type App, appIndex, appIndexers } from '../hosted-apps.ts';

export function submitWithoutCluster(baseUrl: string): Endpoint[] {
  const absent = (): Promise<never> =>
    Promise.reject(
      new Problem(
        noCluster,
        'This API runs without a cluster, so it cannot host apps. To start a cluster on this machine, run `npm run up`.',
      ),
    );
  const described = submitEndpoints({
    apps: appIndex(createStore<App>({ indexers: appIndexers }), 'none'),
    hosts: { allowed: [], insecure: [] },
    baseUrl,
    site: { domain: 'localhost', port: 443 },
    logStreams: 1,
    submit: absent,
    openLog: absent,
    metrics: submitMetrics(new Registry()),
  });
  return described.map((endpoint) => ({ ...endpoint, problems: [noCluster], run: absent }));
}
