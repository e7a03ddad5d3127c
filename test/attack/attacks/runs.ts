// Attacks on the tasks of apps and on what authors run by hand: another author's key, a name that is a command, another app's
// log, and a request that is sent again.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { judged, notTried, type Attack } from '../attack.ts';
import type { Answer, Victim } from '../victim.ts';
import { files, findSlug, getOwnApp, hostOwnApp } from './own-app.ts';

/** The slug of the app whose author is the attacker. */
const name = 'attack-author';
const started = z.looseObject({ id: z.string() });

/** Hosts an app of the attacker, and returns the headers that open it. */
async function openOwnApp(victim: Victim): Promise<Readonly<Record<string, string>>> {
  const { key } = await getOwnApp(victim);
  return { authorization: `Bearer ${key}` };
}

const otherKey: Attack = {
  name: "an author runs a command in another author's app",
  needs: 'git',
  run: async (victim) => {
    const slug = await findSlug(victim);
    const headers = await openOwnApp(victim);
    const answers = [
      await victim.ask(`/api/apps/${slug}/runs`, { method: 'POST', headers, json: { command: ['env'] } }),
      await victim.ask(`/api/apps/${slug}/tasks/clean/runs`, { method: 'POST', headers }),
      await victim.ask(`/api/apps/${slug}/runs`, { headers }),
      await victim.ask(`/api/apps/${slug}/tasks`, { headers }),
    ];
    const statuses = answers.map(({ status }) => status);
    return judged(
      statuses.every((status) => [403, 404, 429].includes(status)),
      `Four requests were answered with ${statuses.join(', ')}.`,
    );
  },
};

const names = [
  'a;id',
  '$(id)',
  '`id`',
  '-rf',
  '../../runs',
  'clean\nid',
  'clean%00',
  'CLEAN',
  '__proto__',
  'a'.repeat(64),
];

const injectedName: Attack = {
  name: 'the name of a task is a command, a path or an option',
  needs: 'git',
  run: async (victim) => {
    const headers = await openOwnApp(victim);
    const accepted: string[] = [];
    for (const task of names) {
      const path = `/api/apps/${name}/tasks/${encodeURIComponent(task)}/runs`;
      const { status } = await victim.ask(path, { method: 'POST', headers });
      if (![400, 404, 422].includes(status)) accepted.push(`${JSON.stringify(task)}: ${status}`);
    }
    const { status, body } = await victim.ask(`/api/apps/${name}/runs`, { headers });
    if (status !== 200) return notTried(`The runs could not be read: ${status}`);
    const { runs } = z.looseObject({ runs: z.array(z.unknown()) }).parse(JSON.parse(body));
    return judged(
      accepted.length === 0 && runs.length === 0,
      accepted.length === 0
        ? `${names.length} names were refused, and ${runs.length} runs exist.`
        : accepted.join('; '),
    );
  },
};

const otherLog: Attack = {
  name: "an author reads the log of another app's run by its id",
  needs: 'git',
  run: async (victim) => {
    const headers = await openOwnApp(victim);
    const run = await victim.ask(`/api/apps/${name}/runs`, { method: 'POST', headers, json: { command: ['env'] } });
    if (run.status !== 200) return notTried(`No run could be started: ${run.status} ${run.body.slice(0, 200)}`);
    const { id } = started.parse(JSON.parse(run.body));
    const second = `${name}-2`;
    const { key } = await hostOwnApp(victim, second, files);
    const other = { authorization: `Bearer ${key}` };
    const paths = [`/runs/${id}`, `/logs?run=${id}`, `/logs?run=${id}&follow=true`, `/logs?run=run-`, `/logs?run=%25`];
    const answers: Answer[] = [];
    for (const path of paths) answers.push(await victim.ask(`/api/apps/${second}${path}`, { headers: other }));
    const statuses = answers.map(({ status }) => status);
    return judged(
      statuses.every((status) => status === 404),
      `${paths.length} requests were answered with ${statuses.join(', ')}.`,
    );
  },
};

const replay: Attack = {
  name: 'a request for a run is recorded and sent again, also many times at the same moment',
  needs: 'git',
  run: async (victim) => {
    const headers = { ...(await openOwnApp(victim)), 'idempotency-key': randomUUID() };
    const start = async (): Promise<Answer> =>
      victim.ask(`/api/apps/${name}/runs`, { method: 'POST', headers, json: { command: ['true'] } });
    const answers = await Promise.all(Array.from({ length: 8 }, start));
    const ids = new Set(
      answers.filter(({ status }) => status === 200).map(({ body }) => started.parse(JSON.parse(body)).id),
    );
    if (ids.size === 0) return notTried(`No run could be started: ${answers[0]?.status ?? ''}`);
    const { body } = await victim.ask(`/api/apps/${name}/runs`, { headers });
    const { runs } = z.looseObject({ runs: z.array(started) }).parse(JSON.parse(body));
    const made = runs.filter(({ id }) => ids.has(id));
    return judged(ids.size === 1 && made.length === 1, `${answers.length} requests started ${ids.size} run.`);
  },
};

export const runAttacks: readonly Attack[] = [otherKey, injectedName, otherLog, replay];
