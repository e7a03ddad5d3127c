// What a crashed app printed of its secrets is masked before the status, its events and the annotations are made of it.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readOperatorConfig } from '../../../../controller/config.ts';
import { maskPods } from '../../../../controller/reconcile/snapshot.ts';
import { listTransitions } from '../../../../controller/reconcile/status.ts';
import { deriveGeneratedValues } from '../../../../controller/steps/deploy/secrets.ts';
import { derivePassword } from '../../../../controller/steps/deploy/services/connections.ts';
import { createAppToken } from '../../../../lib/app-tokens.ts';
import {
  app,
  createBuiltStatus,
  createDeployed,
  first,
  decideStatus,
  createSnapshot,
} from '../../../support/operator/scenario.ts';

const tokenSecret = 'app-token-secret-of-tests-0123456789';
const { installation: config } = readOperatorConfig({
  MOORAGE_PIPELINE_IMAGE: 'registry.test/pipeline',
  MOORAGE_REGISTRY_HOST: 'registry.test',
  MOORAGE_REGISTRY_PROXY: 'proxy.test:5000',
  MOORAGE_PUSH_TOKEN_SECRET: 'push-token-secret-of-tests-0123456789',
  MOORAGE_APPS_DOMAIN: 'apps.test',
  MOORAGE_SERVICES_IMAGES: 'postgres=postgres:17-trixie',
  MOORAGE_APP_TOKEN_SECRET: tokenSecret,
});

const crashing = app(
  {
    run: {
      env: [
        { name: 'SESSION_KEY', value: '${{secret}}' },
        { name: 'ADMIN_PASSWORD', value: 'correct horse battery' },
        { name: 'GREETING', value: 'good morning' },
      ],
      secrets: [{ name: 'STRIPE_KEY', secret: 'payments', key: 'stripe' }],
    },
    services: [{ name: 'db', type: 'postgres' }],
    models: { enabled: true },
  } as never,
  createBuiltStatus(first),
);
/** The same app, as far as its rollout goes. */
const plain = app({}, createBuiltStatus(first));
const [service] = crashing.spec.services;
assert.ok(service);
const models = config.run.models ?? { tokenSecret };
const secrets = [
  derivePassword(crashing, service, config.run.services.passwordSecret),
  ...deriveGeneratedValues(crashing, config.run.services.passwordSecret),
  createAppToken({ name: 'hello', uid: 'uid-1' }, models.tokenSecret),
  'correct horse battery',
];

test('shows no password, generated secret, token or Secret value in a crash log', () => {
  const [password = ''] = secrets;
  const log = [
    ...secrets.map((secret) => `env: ${secret}`),
    `DATABASE_URL=postgres://app:${password}@db:5432/app`,
    'STRIPE_KEY=hunter2',
    'GREETING=good morning',
    'KeyError: PORT',
  ].join('\n');
  const status = {
    restartCount: 3,
    state: { waiting: { reason: 'CrashLoopBackOff' } },
    lastState: { terminated: { exitCode: 1, message: log } },
  };
  const parts = createDeployed(plain, { replicas: 1, updatedReplicas: 1 }, status);
  const pods = maskPods(parts.pods ?? [], crashing, config);
  const { decision, status: made } = decideStatus(createSnapshot(plain, { ...parts, pods }));
  assert.equal(made.rejection?.rule, 'run/crashed');
  assert.match(made.rejection.log ?? '', /GREETING=good morning\nKeyError: PORT/);
  // Of the halt, an annotation of the Deployment has the log too.
  const seen = JSON.stringify([made, decision.actions, listTransitions(plain.status, made)]);
  assert.ok(seen.split('GREETING=good morning').length > 2);
  for (const secret of [...secrets, 'hunter2']) assert.ok(!seen.includes(secret), secret);
});

test('uses cached results for pods that reported nothing', () => {
  const { pods = [] } = createDeployed(plain);
  assert.equal(maskPods(pods, crashing, config), pods);
});
