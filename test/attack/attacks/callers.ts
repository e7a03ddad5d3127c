// Attacks of callers: by HTTP alone, as anybody on the internet could.
import { randomUUID } from 'node:crypto';
import { judged, notTried, type Attack } from '../attack.ts';
import type { Answer, Victim } from '../victim.ts';

const slotAttempts = 300;

/** Where the log of some app is; of one that need not be there where nothing says which apps are. */
async function someLog(victim: Victim): Promise<string> {
  const repository = victim.hasKubectl ? (await victim.liveApp()).spec.source.repo : 'local/hello';
  const [owner = '', name = ''] = repository
    .replace(/\.git$/, '')
    .split('/')
    .slice(-2);
  return `/api/submit-status/${owner}/${name}/log`;
}

const slots: Attack = {
  name: 'HEAD requests for a log take its slots permanently, so that no other caller can read one',
  needs: 'address',
  run: async (victim) => {
    const path = await someLog(victim);
    for (let round = 0; round < slotAttempts / 50; round += 1)
      await Promise.all(Array.from({ length: 50 }, () => victim.ask(path, { method: 'HEAD' })));
    const { status } = await victim.ask(path, { headers: { accept: 'text/plain' } });
    return judged(status === 200 || status === 404, `After ${slotAttempts} HEAD requests a log answers ${status}.`);
  },
};

const pattern = '^(a+)+$';
const slowCalls = 28;
/** A node that is busy otherwise may take this long; workers that are taken, for ever. */
const patience = 10_000;

async function milliseconds(run: () => Promise<{ status: number }>): Promise<{ status: number; took: number }> {
  const start = performance.now();
  const { status } = await run();
  return { status, took: Math.round(performance.now() - start) };
}

function runCode(victim: Victim): Promise<Answer> {
  return victim.ask('/t/run_code', { method: 'POST', json: { code: '1 + 1' } });
}

const starvation: Attack = {
  name: 'an endless pattern keeps every tool worker busy',
  needs: 'address',
  run: async (victim) => {
    const quiet = await milliseconds(() => runCode(victim));
    const slow = Array.from({ length: slowCalls }, () =>
      victim.ask('/t/validate_json', {
        method: 'POST',
        json: { json: `${'a'.repeat(40)}!`, schema: { type: 'string', pattern } },
      }),
    );
    const { status, took } = await milliseconds(() => runCode(victim));
    const statuses = (await Promise.all(slow)).map((answer) => answer.status);
    return judged(
      status === 200 && took < patience,
      `Beside ${slowCalls} such calls (${[...new Set(statuses)].join(', ')}) run_code answered ${status} in ${took} ms, ${quiet.took} ms without them.`,
    );
  },
};

const closed = [
  '168.63.129.16',
  '169.254.169.254',
  '100.64.0.1',
  '192.0.0.192',
  '198.18.0.1',
  '240.0.0.1',
  '[::1]',
  '[fd00:ec2::254]',
];

const metadata: Attack = {
  name: 'a tool fetches from a metadata service or a reserved address',
  needs: 'address',
  run: async (victim) => {
    const answers = await Promise.all(
      closed.map(async (address) => {
        const { status, body } = await victim.ask('/t/fetch_page', {
          method: 'POST',
          json: { url: `http://${address}/` },
        });
        return { address, refused: status === 400 || status === 422 || status === 403, body };
      }),
    );
    const open = answers.filter(({ refused }) => !refused).map(({ address }) => address);
    return judged(
      open.length === 0,
      open.length === 0 ? `All ${closed.length} addresses are refused.` : `Not refused: ${open.join(', ')}.`,
    );
  },
};

const foreignWrites: Attack = {
  name: "a page of another site writes a visitor's memory",
  needs: 'address',
  run: async (victim) => {
    const session = randomUUID();
    const fields = { action: 'set', key: 'k', value: 'written' };
    const link = `/t/memory?${new URLSearchParams({ s: session, ...fields }).toString()}`;
    // As an image, as a script's request, and from an app on a subdomain.
    const statuses = [
      (await victim.ask(link)).status,
      ...(await Promise.all(
        [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'same-site' }].map(
          async (headers) =>
            (await victim.ask(`/t/memory?s=${session}`, { method: 'POST', headers, json: fields })).status,
        ),
      )),
    ];
    const { body } = await victim.ask(`/t/memory?s=${session}&action=get&key=k`);
    return judged(
      statuses.join() === '405,403,403' && !body.includes('written'),
      `GET and two POSTs that a page makes a browser send answered ${statuses.join(', ')}.`,
    );
  },
};

const inventedKeys = 300;
/** So many checks may fail in a minute on each replica; more of them than any installation is likely to have. */
const checksAllowed = 100;

const oracle: Attack = {
  name: 'invented API keys are checked endlessly, until a valid one is found',
  needs: 'address',
  run: async (victim) => {
    const answers = await Promise.all(
      Array.from({ length: inventedKeys }, (_, index) =>
        victim.ask('/api/ask', {
          method: 'POST',
          headers: { authorization: `Bearer sk-attack-${Date.now()}-${index}` },
          json: { prompt: 'Hello' },
        }),
      ),
    );
    const limited = answers.filter(({ status }) => status === 429);
    const checked = answers.filter(({ status }) => status === 401).length;
    if (checked === 0 && limited.length === 0)
      return notTried(`No key is checked here: they are answered ${answers[0]?.status ?? 'by nothing'}.`);
    return judged(
      limited.length >= inventedKeys - checksAllowed &&
        limited.every(({ headers }) => headers['retry-after'] !== undefined),
      `Of ${inventedKeys} invented keys ${checked} were checked, ${limited.length} got 429 with Retry-After.`,
    );
  },
};

const maxListBytes = 40_000;

const toolList: Attack = {
  name: "an app's operation descriptions fill the list that every agent reads",
  needs: 'address',
  run: async (victim) => {
    const { status, body } = await victim.ask('/mcp', {
      method: 'POST',
      headers: { accept: '*/*', 'mcp-protocol-version': '2025-11-25' },
      json: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} },
    });
    const names = [...body.matchAll(/"name":"([^"]+)"/g)].map(([, name = '']) => name);
    // Names of operations have two underscores or, in earlier versions, a dot.
    const foreign = names.filter((name) => name.includes('__') || !/^[a-zA-Z0-9_-]{1,64}$/.test(name));
    const bytes = Buffer.byteLength(body);
    return judged(
      status === 200 && names.includes('search_tools') && foreign.length === 0 && bytes < maxListBytes,
      `tools/list answered ${status} with ${names.length} names in ${bytes} bytes, ${foreign.length} of them of apps.`,
    );
  },
};

export const callerAttacks: readonly Attack[] = [slots, starvation, metadata, foreignWrites, oracle, toolList];
