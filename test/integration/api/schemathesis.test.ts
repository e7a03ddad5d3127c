// Thousands of requests made up from the OpenAPI document, right and wrong ones, against the API as a process: no 5xx,
// and nothing that the document does not say.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { readCatalog } from '../../../api/models/catalog.ts';
import { startDemoRouter, type DemoRouter } from '../../../api/models/router/demo-router.ts';
import { waitFor } from '../../../localnode/shell.ts';
import { setStatus, since, startAppsServer } from '../../support/api/apps-server.ts';
import { applyText, namespaces } from '../../support/api/replica.ts';
import type { ApiServer } from '../../support/kubernetes/api-server.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';
import { runSchemathesis } from '../../support/api/schemathesis.ts';
import { chooseRepetitions } from '../../support/repetitions.ts';
import { findFreePort } from '../../support/free-port.ts';

const secret = 'a-secret-of-the-tests-that-is-long-enough';
const root = join(import.meta.dirname, '..', '..', '..');
/** Most random cases of an operation in each phase; the cases at the bounds of each value come in addition. */
const examples = chooseRepetitions({ usual: 3, deep: 50 });
let server: ApiServer;
let postgres: SharedPostgres;
let router: DemoRouter;
let stopApi = (): Promise<void> => Promise.resolve();
let url: string;

/** An app that is live and may ask models. */
const liveApp = `
apiVersion: moorage.dev/v1alpha1
kind: HostedApp
metadata: {name: chat, namespace: ${namespaces.apps}}
spec: {source: {repo: "https://git.test/octo/chat"}, models: {enabled: true, dailyBudgetUsd: "1000"}}
`;

beforeAll(async () => {
  server = await startAppsServer();
  await applyText(server, liveApp);
  await setStatus(server, 'chat', {
    phase: 'Live',
    url: 'https://chat.moorage.test',
    source: { commit: 'a'.repeat(40) },
    served: { image: 'i', commit: 'a'.repeat(40), since: since },
  });
  postgres = await sharePostgres();
  router = await startDemoRouter(readCatalog());
  const [port, apps, internal] = [await findFreePort(), await findFreePort(), await findFreePort()];
  url = `http://127.0.0.1:${port}`;
  const api = execa(process.execPath, ['api/main.ts'], {
    cwd: root,
    reject: false,
    stdout: 'ignore',
    stderr: 'inherit',
    env: {
      LOG_LEVEL: 'error',
      KUBECONFIG: server.kubeconfig,
      MOORAGE_BASE_DOMAIN: 'moorage.test',
      MOORAGE_GIT_ALLOWED_HOSTS: 'git.test',
      MOORAGE_CALLER_SALT: 'x'.repeat(64),
      MOORAGE_DRAIN_SECONDS: '1',
      MOORAGE_PORT: String(port),
      MOORAGE_APPS_PORT: String(apps),
      MOORAGE_INTERNAL_PORT: String(internal),
      MOORAGE_APP_TOKEN_SECRET: secret,
      DATABASE_URL: await postgres.createDatabase('schemathesis'),
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_FREE_QUOTA_USD: '10000',
      MOORAGE_DAILY_CAP_USD: '100000',
    },
  });
  stopApi = async () => {
    api.kill();
    await api;
  };
  await waitFor(
    'the API asking models',
    async () => {
      const answer = await fetch(`${url}/api/ask`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"prompt": "Hello", "max_tokens": 1}',
      });
      return answer.status === 200;
    },
    { seconds: 300 },
  );
});

afterAll(async () => {
  await stopApi();
  await router.close();
  await postgres.stop();
  await server.stop();
});

/**
 * What a JSON Schema cannot say of a valid request: that a repository has to be one of an allowed host, that a prompt
 * may not be blank, that one field
 * excludes another. Such a request is refused with 400 and a fix (402: its caller has run out; 422: what it names
 * cannot be worked on), and never fails.
 * No pod stands behind the app that is live here (502).
 * Of tools, a made-up address is nobody's (502), and no service runs beside this API (503). A query is text that is
 * read kindly: `models=` is no models.
 */
const config = (): string => `
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "401", "402", "403", "404", "409", "422", "429"]

# Of settings of one operation the first counts. What is kept changes by POST alone: a GET with action=set or delete is 405.
[[operations]]
include-method = "GET"
include-path = "/t/memory"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "402", "404", "405", "409", "422", "429", "502", "503"]

[[operations]]
include-method = "GET"
include-path-regex = "^/t/"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "502", "503"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "402", "404", "409", "422", "429", "502", "503"]
checks.negative_data_rejection.enabled = false

[[operations]]
include-path-regex = "^/t/"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "502", "503"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "402", "404", "409", "422", "429", "502", "503"]
# A text longer than allowed can be larger than a body may be.
checks.negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429"]

[[operations]]
include-path-regex = "^/api/projects/"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "502"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "402", "404", "409", "422", "429", "502"]

[[operations]]
include-path-regex = "^/v1/"
headers = { Authorization = "Bearer sk-demo-12345678" }
# A list with more items than allowed can be larger than a body may be.
checks.negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429"]
`;

const text = z.looseObject({ maxLength: z.int().optional() });
/** JSON in a query is described by its content, everything else by a schema. */
const parameter = z.looseObject({
  schema: text.optional(),
  content: z.record(z.string(), z.looseObject({ schema: text })).optional(),
});
const described = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), z.looseObject({ parameters: z.array(parameter) }))),
});

/**
 * The document without the limits of texts that are longer than an address can be: those are tried in bodies, where
 * they can be sent.
 */
async function documentForAddresses(): Promise<z.output<typeof described>> {
  const document = described.parse(await (await fetch(`${url}/openapi.json`)).json());
  for (const { parameters } of Object.values(document.paths).flatMap((methods) => Object.values(methods))) {
    const schemas = parameters.flatMap(({ schema, content = {} }) => [
      ...(schema === undefined ? [] : [schema]),
      ...Object.values(content).map((each) => each.schema),
    ]);
    for (const schema of schemas) if ((schema.maxLength ?? 0) > 1_000) delete schema.maxLength;
  }
  return document;
}

test('every operation: no 5xx, and no violation of its contract', async (context) => {
  const document = await documentForAddresses();
  const { operations, cases, failures } = await runSchemathesis({ url, document, examples, config: config() });
  await context.annotate(`${cases} cases over ${operations} operations`);
  assert.ok(failures === '', failures);
  assert.equal(operations, Object.values(document.paths).flatMap((methods) => Object.keys(methods)).length);
  assert.ok(cases > operations * examples, `${cases} cases`);
});
