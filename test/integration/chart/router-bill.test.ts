// The key that reads the router's bill comes from a Secret of its own, and only where one is named.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readModelSettings } from '../../../api/models/config.ts';
import { readEnvironment, render, required } from '../../support/chart.ts';

const router = { baseUrl: 'https://router.example.org/v1', keySecret: 'router' };

test('reads the bill with the platform key, or with the one in billKeySecret', async () => {
  const names = async (more: object): Promise<string[]> =>
    Object.keys(
      readEnvironment(await render({ ...required, models: { router: { ...router, ...more } } }), 'api'),
    ).filter((name) => name.startsWith('MOORAGE_ROUTER_') && name.endsWith('KEY'));
  assert.deepEqual(await names({}), ['MOORAGE_ROUTER_KEY']);
  assert.deepEqual(await names({ billKeySecret: 'router-bill' }), ['MOORAGE_ROUTER_KEY', 'MOORAGE_ROUTER_BILL_KEY']);
  const settings = readModelSettings({
    MOORAGE_ROUTER_URL: router.baseUrl,
    MOORAGE_ROUTER_KEY: 'sk-platform',
    MOORAGE_ROUTER_BILL_KEY: 'sk-bill',
  });
  assert.deepEqual([settings.router?.key, settings.router?.billKey], ['sk-platform', 'sk-bill']);
});
