// The chart's part in metering: the token that gateways show.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { ofKind, render, required } from '../../support/chart.ts';

test('the token of access logs is the same for the API and for its gateway in another namespace', async () => {
  const objects = await render({ ...required, metering: { gatewayNamespace: 'gateways' } });
  const secrets = ofKind(objects, 'Secret').filter(({ metadata }) => metadata.name === 'moorage-metering');
  const [ours, theirs] = secrets.map((secret) =>
    z.looseObject({ data: z.object({ token: z.string() }) }).parse(secret),
  );
  assert.deepEqual(
    secrets.map(({ metadata }) => metadata.namespace),
    ['moorage-system', 'gateways'],
  );
  assert.ok((ours?.data.token.length ?? 0) >= 64);
  assert.deepEqual(theirs?.data, ours?.data);
});
