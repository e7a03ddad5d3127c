// A spender over a scripted router and a ledger in memory, as a call of a tool has it.
import { readPriceList } from '../../../api/billing/prices.ts';
import { Registry } from 'prom-client';
import { migratedDatabase } from '../ledger/snapshot.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { parseMoney } from '../../../api/billing/ledger/money.ts';
import { openLedgerDatabase, type Database } from '../../../api/billing/database/database.ts';
import { CallsInFlight, Wallet } from '../../../api/billing/wallet.ts';
import { Settlements } from '../../../api/billing/settlements.ts';
import { readCatalog, type Catalog } from '../../../api/models/catalog.ts';
import { CallerKeys } from '../../../api/models/caller-keys.ts';
import { MeteredRouter, createModelMetrics } from '../../../api/models/metered-router.ts';
import { createAnonymousPayer, createKeyPayer, type Payer } from '../../../api/billing/ledger/accounts.ts';
import { RouterClient } from '../../../api/models/router/client.ts';
import { ModelSpender, type ModelSpenderOptions } from '../../../api/tools/engine/spender.ts';
import {
  startScriptedRouter,
  type RouterRequest,
  type Script,
  type ScriptedRouter,
} from '../models/scripted-router.ts';
import { silent } from '../api/sample.ts';

export interface ModelLab {
  readonly catalog: Catalog;
  readonly database: Database;
  readonly ledger: Ledger;
  readonly router: ScriptedRouter;
  readonly anonymous: Payer;
  readonly keyed: Payer;
  spender(options?: Partial<ModelSpenderOptions>): ModelSpender;
  stop(): Promise<void>;
}

export interface ModelLabOptions {
  /** Script of each model, by its id; others have none. */
  readonly models: Readonly<Record<string, Script>>;
  readonly freeQuota?: string;
}

export const maxTokens = { default: 1_000, max: 8_000 };

export async function startModelLab({ models, freeQuota = '1' }: ModelLabOptions): Promise<ModelLab> {
  const catalog = readCatalog();
  const scripts = Object.fromEntries(
    Object.entries(models).map(([id, script]) => [catalog.byId.get(id)?.upstream ?? id, script]),
  );
  const router = await startScriptedRouter({
    '/key': (response) => {
      response.writeHead(200).end('{}');
    },
    ...scripts,
  });
  const client = new RouterClient({ kind: 'openrouter', url: router.url, key: 'sk-platform-key' }, { callMs: 10_000 });
  const database = await openLedgerDatabase(migratedDatabase);
  const ledger = new Ledger(database);
  const metrics = createModelMetrics(new Registry());
  const wallet = new Wallet({
    ledger,
    settlements: new Settlements({ ledger, log: silent }),
    log: silent,
    refused: () => undefined,
  });
  const metered = new MeteredRouter({
    wallet,
    router: client,
    metrics,
    log: silent,
    callMs: 10_000,
    prices: readPriceList(undefined, 0),
    inFlight: new CallsInFlight({ limits: { caller: 8, all: 256 } }),
  });
  const keys = new CallerKeys({ router: client, hash: (key) => `hash-of-${key}` });
  const limits = {
    router: 'openrouter',
    freeQuota: parseMoney(freeQuota),
    dailyCap: parseMoney('100'),
    keyLimit: parseMoney('5'),
  };
  const anonymous = createAnonymousPayer('somebody', limits);
  return {
    catalog,
    database,
    ledger,
    router,
    anonymous,
    keyed: createKeyPayer('owner', 'sk-test-12345678', limits),
    spender: (options = {}) =>
      new ModelSpender({
        services: () => ({ router: metered, keys }),
        maxTokens,
        catalog,
        payer: anonymous,
        tool: 'sample',
        signal: new AbortController().signal,
        ...options,
      }),
    async stop() {
      await router.close();
      await client.close();
      await database.close();
    },
  };
}

/** A script that answers with this text, made from what was asked, at this cost. */
export function createAnswer(
  text: string | ((said: string, system: string | undefined) => string),
  cost = '0.0001',
  finish = 'stop',
): Script {
  return (response, asked) => {
    const answer = typeof text === 'string' ? text : text(readPrompt(asked), readSystemPrompt(asked));
    const message = {
      id: 'gen-1',
      choices: [{ message: { role: 'assistant', content: answer }, finish_reason: finish }],
    };
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(`${JSON.stringify(message).slice(0, -1)},"usage":{"prompt_tokens":7,"completion_tokens":9,"cost":${cost}}}`);
  };
}

interface Message {
  readonly role: string;
  readonly content: string;
}

function listMessages({ body }: RouterRequest): readonly Message[] {
  return (JSON.parse(body) as { messages: Message[] }).messages;
}

/** What the user said in a question that the router got. */
export function readPrompt(asked: RouterRequest): string {
  return listMessages(asked).find(({ role }) => role === 'user')?.content ?? '';
}

export function readSystemPrompt(asked: RouterRequest): string | undefined {
  return listMessages(asked).find(({ role }) => role === 'system')?.content;
}
