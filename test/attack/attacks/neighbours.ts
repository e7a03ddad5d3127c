// Attacks of a neighbour: a caller without a key whose address counts as the same caller, and who has none of its handles.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { judged, notTried, type Attack } from '../attack.ts';
import type { Answer, Victim } from '../victim.ts';

const reply = z.object({ result: z.unknown().optional(), error: z.unknown().optional() });

async function a2a(victim: Victim, method: string, params: object): Promise<z.output<typeof reply>> {
  const { body } = await victim.ask('/a2a', {
    method: 'POST',
    headers: { 'a2a-version': '1.0' },
    json: { jsonrpc: '2.0', id: 1, method, params },
  });
  return reply.parse(JSON.parse(body));
}

/** The address of a document to translate, which takes long enough for the call to be a task. */
async function makeDocument(victim: Victim): Promise<string | undefined> {
  const { body } = await victim.ask('/t/convert_to_pdf', {
    method: 'POST',
    json: { markdown: `Attack ${randomUUID()}.` },
  });
  return z.object({ artifact: z.object({ url: z.url() }) }).safeParse(JSON.parse(body)).data?.artifact.url;
}

/** The id of a task that a caller without a key has started; undefined where no tool runs as one. */
async function startTask(victim: Victim, url: string | undefined): Promise<string | undefined> {
  const { result } = await a2a(victim, 'SendMessage', {
    message: {
      messageId: randomUUID(),
      role: 'ROLE_USER',
      parts: [{ data: { tool: 'translate_pdf', arguments: { url, to: 'de' } } }],
    },
    configuration: { returnImmediately: true },
  });
  const task = z.object({ task: z.object({ id: z.string(), status: z.object({ state: z.string() }) }) });
  const started = task.safeParse(result).data?.task;
  // A refused call has an id too, and there is no task behind it.
  return started === undefined || /REJECTED|FAILED/.test(started.status.state) ? undefined : started.id;
}

const tasks: Attack = {
  name: 'a neighbour lists the tasks of a caller without a key, or gets the id of one by sending the same call',
  needs: 'address',
  run: async (victim) => {
    const url = await makeDocument(victim);
    const id = await startTask(victim, url);
    if (id === undefined) return notTried('No tool of this installation runs as a task.');
    const listed = JSON.stringify(await a2a(victim, 'ListTasks', { pageSize: 100 }));
    const same = await startTask(victim, url);
    const other = await a2a(victim, 'CancelTask', { id: randomUUID() });
    for (const one of [id, same]) if (one !== undefined) await a2a(victim, 'CancelTask', { id: one });
    return judged(
      !listed.includes(id) && same !== id && other.error !== undefined,
      `ListTasks without a key ${listed.includes(id) ? 'names' : 'does not name'} the task, the same call gets ${same === id ? 'the same' : 'another'} id.`,
    );
  },
};

const push: Attack = {
  name: "a caller with a task's id reads the token and the credentials of its push notifications",
  needs: 'address',
  run: async (victim) => {
    const id = await startTask(victim, await makeDocument(victim));
    if (id === undefined) return notTried('No tool of this installation runs as a task.');
    const secret = `secret-${randomUUID()}`;
    const made = await a2a(victim, 'CreateTaskPushNotificationConfig', {
      taskId: id,
      // An address as it is, so that the attack needs no name service; the config is gone before the task ends.
      url: 'https://93.184.215.14/attack',
      token: secret,
      authentication: { scheme: 'Bearer', credentials: secret },
    });
    const listed = await a2a(victim, 'ListTaskPushNotificationConfigs', { taskId: id });
    const configId = z.object({ result: z.object({ id: z.string() }) }).safeParse(made).data?.result.id;
    if (configId !== undefined) await a2a(victim, 'DeleteTaskPushNotificationConfig', { taskId: id, id: configId });
    await a2a(victim, 'CancelTask', { id });
    if (made.error !== undefined) return notTried(`A config is refused: ${JSON.stringify(made.error).slice(0, 200)}`);
    const echoed = [made, listed].filter((answer) => JSON.stringify(answer).includes(secret)).length;
    return judged(echoed === 0, `${echoed} of 2 answers hold the secret.`);
  },
};

const history: Attack = {
  name: 'a neighbour reads the uses and charges of a caller without a key',
  needs: 'address',
  run: async (victim) => {
    const requestId = randomUUID();
    const today = new Date().toISOString().slice(0, 10);
    const call = await victim.ask('/t/run_code', {
      method: 'POST',
      headers: { 'x-request-id': requestId },
      json: { code: '1 + 1' },
    });
    const usage = await victim.ask('/api/usage');
    const charges = await victim.ask(`/api/charges?day=${today}`);
    const uses = z.object({ uses: z.array(z.unknown()) }).safeParse(JSON.parse(usage.body)).data?.uses.length;
    return judged(
      call.status === 200 && uses === 0 && charges.status !== 200,
      `After a call that is answered ${call.status}, /api/usage lists ${uses ?? 'no'} uses, and /api/charges answers ${charges.status}.`,
    );
  },
};

function keyed(victim: Victim, key: string, code: string): Promise<Answer> {
  return victim.ask('/t/run_code', { method: 'POST', headers: { 'idempotency-key': key }, json: { code } });
}

const idempotency: Attack = {
  name: 'a neighbour uses an Idempotency-Key first, or reads its stored response',
  needs: 'address',
  run: async (victim) => {
    const guessable = ['1', 'retry', 'order-5', `order-${'0'.repeat(30)}1`];
    const answers = await Promise.all(guessable.map((key) => keyed(victim, key, '1 + 1')));
    const taken = guessable.filter((_key, index) => answers[index]?.status !== 400);
    const mine = randomUUID();
    const [first, again] = [await keyed(victim, mine, '6 * 7'), await keyed(victim, mine, '6 * 7')];
    const works = first.status === 200 && again.headers['idempotent-replayed'] === 'true';
    return judged(
      taken.length === 0 && works,
      `${taken.length} of ${guessable.length} keys that can be guessed are taken; a random one is ${works ? 'replayed' : 'not replayed'} to its sender.`,
    );
  },
};

const memory: Attack = {
  name: 'a neighbour reads the memory of a caller without a key by its session name',
  needs: 'address',
  run: async (victim) => {
    const set = (s?: string): Promise<Answer> =>
      victim.ask('/t/memory', {
        method: 'POST',
        json: { action: 'set', key: 'k', value: 'v', ...(s === undefined ? {} : { s }) },
      });
    const weak = await set('demo');
    const own = await set();
    const { result } = z.object({ result: z.object({ session: z.string() }) }).parse(JSON.parse(own.body));
    const read = await victim.ask(`/t/memory?action=get&key=k&s=${result.session}`);
    const others = await victim.ask('/t/memory?action=list');
    return judged(
      weak.status === 400 && others.status === 400 && /"value":"v"/.test(read.body),
      `A session that can be guessed is answered ${weak.status}, a list without one ${others.status}; the random one opens its space.`,
    );
  },
};

export const neighbourAttacks: readonly Attack[] = [tasks, push, history, idempotency, memory];
