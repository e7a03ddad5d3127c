// Sign-in as the chart sets it up: the API alone has the providers, and its network policy opens the way to private forges.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findNamed, render, required } from '../../support/chart.ts';

test('names no provider unless a Secret is named', async () => {
  const objects = await render(required);
  assert.equal(JSON.stringify(objects).includes('MOORAGE_SIGN_IN_PROVIDERS'), false);
});

test('gives the Secret to the API alone, and reaches private forges at their addresses', async () => {
  const signIn = { providersSecret: 'moorage-sign-in', cidrs: ['10.1.2.3/32'], port: 3443 };
  const objects = await render({ ...required, signIn });
  const naming = objects.filter((object) => JSON.stringify(object).includes('moorage-sign-in'));
  assert.deepEqual(
    naming.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    ['Deployment moorage-api'],
  );
  assert.match(
    JSON.stringify(naming),
    /\{"name":"MOORAGE_SIGN_IN_PROVIDERS","valueFrom":\{"secretKeyRef":\{"name":"moorage-sign-in","key":"providers.json"\}\}\}/,
  );
  const policy = JSON.stringify(findNamed(objects, 'NetworkPolicy', 'moorage-api'));
  assert.match(policy, /"port":3443\}\],"to":\[\{"ipBlock":\{"cidr":"10\.1\.2\.3\/32"\}\}\]/);
  const open = await render({ ...required, signIn: { providersSecret: 'moorage-sign-in' } });
  assert.equal(JSON.stringify(findNamed(open, 'NetworkPolicy', 'moorage-api')).includes('3443'), false);
});
