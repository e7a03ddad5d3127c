// Notifications on a real PostgreSQL with the rights of the API: several replicas at the same moment, and one that is killed.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { Notifier } from '../../../api/apps/notifications/deliveries.ts';
import { NotificationKeys } from '../../../api/apps/notifications/messages.ts';
import { RecipientStore } from '../../../api/apps/notifications/recipients.ts';
import { NotificationStore } from '../../../api/apps/notifications/store.ts';
import { type Database, openLedgerDatabase } from '../../../api/billing/index.ts';
import { GuardedFetcher } from '../../../api/tools/index.ts';
import { baseUrl, sampleApp, sampleApps, silent } from '../../support/api/sample.ts';
import { type Receiver, startReceiver } from '../../support/apps/notifications.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';

const [appCount, replicaCount] = [30, 4];
let postgres: SharedPostgres;
let databases: Database[];
let receiver: Receiver;

beforeAll(async () => {
  postgres = await sharePostgres();
  const url = await postgres.createDatabase('notifications');
  databases = await Promise.all(Array.from({ length: replicaCount }, () => openLedgerDatabase(url)));
  receiver = await startReceiver();
});
afterAll(async () => {
  await receiver.stop();
  await Promise.all(databases.map((database) => database.close()));
  await postgres.stop();
});

test('several replicas that notice and deliver at the same moment send each event once', async () => {
  const since = new Date().toISOString();
  const apps = Array.from({ length: appCount }, (_, number) =>
    sampleApp(`app-${number}`, undefined, {
      phase: 'Live',
      since,
      url: `https://app-${number}.apps.test/`,
      served: { image: 'registry.test/app@sha256:0', commit: 'a'.repeat(40), since },
    }),
  );
  const { apps: index } = sampleApps(...apps);
  const replicas = databases.map((database) => {
    const store = new NotificationStore(() => database);
    const recipients = new RecipientStore(() => database);
    const notifier = new Notifier({
      apps: index,
      store,
      recipients,
      keys: new NotificationKeys('secret'),
      sendMail: undefined,
      fetcher: new GuardedFetcher({ allow: [receiver.host] }),
      baseUrl,
      log: silent,
      ending: new AbortController().signal,
    });
    return { store, recipients, notifier };
  });
  for (const { metadata } of apps) await replicas[0]?.recipients.setWebhook(metadata.uid, receiver.url, ['live']);
  await Promise.all(replicas.map(({ notifier }) => notifier.notice()));
  for (let made = 1; made > 0;)
    made = (await Promise.all(replicas.map(({ notifier }) => notifier.deliver()))).reduce(
      (sum, count) => sum + count,
      0,
    );
  const body = z.looseObject({ data: z.looseObject({ app: z.string() }) });
  const named = receiver.hooks.map((hook) => body.parse(JSON.parse(hook.body)).data.app);
  assert.deepEqual(named.toSorted(), apps.map(({ metadata }) => metadata.name).toSorted());
  assert.equal(new Set(receiver.hooks.map(({ headers }) => headers['webhook-id'])).size, appCount);
  await Promise.all(replicas.map(({ store }) => store.purge()));
});
