// Attacks on what an app keeps for its author: secrets, settings, releases, logs, and the app itself.
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { judged, notTried, type Attack } from '../attack.ts';
import type { Answer, Victim } from '../victim.ts';
import { askOwn, describeFaults, findSlug, getOwnApp, listAnswered, type OwnApp, sendForm, signIn } from './own-app.ts';

/** Sets a secret of the attacker's app. @returns its value. @throws Error if it was refused, so that nothing is judged */
async function plantSecret(victim: Victim, own: OwnApp, name: string): Promise<string> {
  const value = `attack-${randomBytes(12).toString('hex')}`;
  const { status, body } = await askOwn(victim, own, `/secrets/${name}`, { method: 'PUT', json: { value } });
  if (status !== 200) throw new Error(`the secret could not be set: ${status} ${body.slice(0, 200)}`);
  return value;
}

/** The texts, by their names, that have a value or what could be made of it. */
function listLeaks(value: string, texts: Readonly<Record<string, string>>): string[] {
  const forms = [value, Buffer.from(value).toString('base64'), encodeURIComponent(value), JSON.stringify(value)];
  return Object.entries(texts)
    .filter(([, text]) => forms.some((form) => text.includes(form)))
    .map(([place]) => `${place} has the secret`);
}

const readBack: Attack = {
  name: 'a secret is read back with the key of the author',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const value = await plantSecret(victim, own, 'TOKEN');
    const { cookie } = await signIn(victim, own);
    const texts: Record<string, string> = {};
    for (const path of ['', '/secrets', '/secrets/TOKEN', '/settings', '/audit', '/notifications'])
      texts[`GET ${path}`] = (await askOwn(victim, own, path)).body;
    texts['the page'] = (
      await victim.ask(`/apps/${own.slug}/manage`, { headers: { cookie, accept: 'text/html' } })
    ).body;
    const leaks = listLeaks(value, texts);
    return judged(leaks.length === 0, describeFaults(leaks, `It is in none of ${Object.keys(texts).length} places.`));
  },
};

const exported: Attack = {
  name: 'the export of an app has its secrets or keys',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const value = await plantSecret(victim, own, 'TOKEN');
    const { status, body, headers } = await askOwn(victim, own, '/export');
    if (status !== 200) return notTried(`The export answered ${status}.`);
    const leaks = listLeaks(value, { 'the export': body });
    if (body.includes(own.key)) leaks.push('the export has the key');
    // A name with a path or a quote could choose where the file is saved.
    if (!/^attachment; filename="[a-z0-9-]+\.json"$/.test(String(headers['content-disposition'])))
      leaks.push(`the file is named ${String(headers['content-disposition'])}`);
    return judged(leaks.length === 0, describeFaults(leaks, 'It has the names of secrets alone.'));
  },
};

const echoed: Attack = {
  name: 'the refusal of a secret repeats its value',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const value = `attack-${randomBytes(12).toString('hex')}`;
    const bodies: readonly unknown[] = [
      { value: `${value}\0` },
      { value: value.padEnd(40_000, 'x') },
      { value, more: value },
      { value: [value] },
      { secret: value },
      value,
    ];
    const faults: string[] = [];
    for (const json of bodies) {
      const { status, body } = await askOwn(victim, own, '/secrets/TOKEN', { method: 'PUT', json });
      if (status < 400 || status >= 500) faults.push(`a bad value answers ${status}`);
      if (body.includes(value)) faults.push(`a refusal with ${status} has the value`);
    }
    const { status, body } = await askOwn(victim, own, '/secrets/TOKEN', {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      text: `{"value": "${value}`,
    });
    if (status < 400 || body.includes(value)) faults.push('broken JSON is repeated');
    return judged(
      faults.length === 0,
      describeFaults(faults, `${bodies.length + 1} values were refused, and not repeated.`),
    );
  },
};

const secretNames: Attack = {
  name: 'the name of a secret leaves its path, or replaces a variable of the platform',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const names = [
      '..%2fTOKEN',
      '%2e%2e',
      'A=B',
      'A%0aB',
      'A%00',
      'MOORAGE_TOKEN',
      '1A',
      'a-b',
      '%24(id)',
      'A'.repeat(300),
    ];
    const faults: string[] = [];
    for (const name of names) {
      const { status } = await askOwn(victim, own, `/secrets/${name}`, { method: 'PUT', json: { value: 'x' } });
      if (status < 400 || status >= 500) faults.push(`${name.slice(0, 20)} answers ${status}`);
    }
    return judged(faults.length === 0, describeFaults(faults, `${names.length} names were refused.`));
  },
};

/** Reads what the log of the attacker's app shows since it started with a secret. */
async function readLog(victim: Victim, own: OwnApp, accept: string): Promise<Answer> {
  return askOwn(victim, own, '/logs?tail=200', { headers: { accept } });
}

const loggedSecret: Attack = {
  name: 'a secret that an app prints is in its log',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const value = await plantSecret(victim, own, 'TOKEN');
    const text = await victim.until(
      'the restarted app in its log',
      async () => {
        const { status, body } = await readLog(victim, own, 'text/plain');
        return status === 200 && (body.match(/fake/g) ?? []).length >= 2 ? body : undefined;
      },
      90,
    );
    const events = await readLog(victim, own, 'text/event-stream');
    const leaks = listLeaks(value, { 'the text': text, 'the stream': events.body });
    return judged(leaks.length === 0, describeFaults(leaks, 'The log is masked.'));
  },
};

const logInjection: Attack = {
  name: 'an app forges events, terminal commands or HTML in the log that its author reads',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const text = await readLog(victim, own, 'text/plain');
    const events = await readLog(victim, own, 'text/event-stream');
    if (text.status !== 200 || !text.body.includes('fake')) return notTried(`The log answered ${text.status}.`);
    const { cookie } = await signIn(victim, own);
    const page = await victim.ask(`/apps/${own.slug}/manage`, { headers: { cookie, accept: 'text/html' } });
    const faults = [
      // eslint-disable-next-line no-control-regex
      ...(/\u001b/.test(text.body) ? ['the text has escape sequences'] : []),
      // The API itself sends one, when there are no more lines.
      ...((events.body.match(/^event: end\r?$/gm) ?? []).length > 1 ? ['an event was forged'] : []),
      ...(page.body.includes('<script>alert(1)</script>') ? ['the page runs a script of the app'] : []),
    ];
    return judged(faults.length === 0, describeFaults(faults, 'The log is escaped.'));
  },
};

const reflected: Attack = {
  name: 'a link to the page of an author runs a script with what it searches for or says that it did',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const { cookie } = await signIn(victim, own);
    const script = '"><script>alert(1)</script>';
    const faults: string[] = [];
    for (const field of ['search', 'done', 'lang', 'error']) {
      const path = `/apps/${own.slug}/manage?${field}=${encodeURIComponent(script)}`;
      const { body } = await victim.ask(path, { headers: { cookie, accept: 'text/html' } });
      if (body.includes(script)) faults.push(`${field} is shown as it is`);
    }
    return judged(faults.length === 0, describeFaults(faults, 'Four fields are escaped.'));
  },
};

const storedScript: Attack = {
  name: 'a variable or a form puts HTML into the page of an author',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const script = '</textarea><script>alert(2)</script>';
    const { status } = await askOwn(victim, own, '/settings', {
      method: 'PUT',
      json: { env: [{ name: 'GREETING', value: script }] },
    });
    if (status !== 200) return notTried(`The variable could not be set: ${status}.`);
    const { cookie, token } = await signIn(victim, own);
    const page = await victim.ask(`/apps/${own.slug}/manage`, { headers: { cookie, accept: 'text/html' } });
    const refused = await sendForm(
      victim,
      own.slug,
      { action: 'set-secret', token, name: script, value: 'x' },
      { cookie },
    );
    await askOwn(victim, own, '/settings', { method: 'PUT', json: { env: null } });
    if (!page.body.includes('&lt;script')) return notTried('The page does not show the variable.');
    const faults = Object.entries({ 'the variable': page.body, 'the refused form': refused.body })
      .filter(([, body]) => body.includes('<script>alert(2)'))
      .map(([what]) => `${what} is shown as it is`);
    return judged(faults.length === 0, describeFaults(faults, 'Both are escaped.'));
  },
};

/** What the author has set, as the API server has it: a replica of the API may be a moment behind. */
async function readControl(victim: Victim, slug: string): Promise<string> {
  return JSON.stringify((await victim.app(slug)).spec.control ?? {});
}

/** Settings that an author may not have. */
const greed: readonly unknown[] = [
  { replicas: 1000 },
  { replicas: -1 },
  { replicas: 1.5 },
  { idleAfter: '-1s' },
  { idleAfter: '99999h' },
  { healthPath: 'https://evil.example/' },
  { healthPath: '/a\r\nHost: b' },
  { env: [{ name: 'MOORAGE_TOKEN', value: 'x' }] },
  { env: [{ name: 'A=B', value: 'x' }] },
  { env: [{ name: 'A', value: 'x', valueFrom: { secretKeyRef: { name: 'other', key: 'token' } } }] },
  { resources: { cpu: '64' } },
  { image: 'evil.example/image' },
  { author: { share: '1' } },
  { suspended: false },
  {},
];

const settingsBeyondLimits: Attack = {
  name: 'an author sets what only the operator of the installation may set, or beyond its limits',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const before = await readControl(victim, own.slug);
    const faults: string[] = [];
    for (const json of greed) {
      const { status } = await askOwn(victim, own, '/settings', { method: 'PUT', json });
      if (status < 400 || status >= 500) faults.push(`${JSON.stringify(json)} answers ${status}`);
    }
    if ((await readControl(victim, own.slug)) !== before) faults.push('the settings have changed');
    return judged(faults.length === 0, describeFaults(faults, `${greed.length} changes were refused.`));
  },
};

const pollution: Attack = {
  name: 'a body with __proto__ or a doubled field changes what its checks do not see',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const before = await readControl(victim, own.slug);
    const texts = [
      '{"__proto__": {"replicas": 3}}',
      '{"constructor": {"prototype": {"replicas": 3}}}',
      '{"replicas": 1, "__proto__": {"image": "x"}}',
      '[{"replicas": 1}]',
      '"replicas"',
      'null',
    ];
    const faults: string[] = [];
    for (const text of texts) {
      const options = { method: 'PUT', headers: { 'content-type': 'application/json' }, text } as const;
      const { status } = await askOwn(victim, own, '/settings', options);
      if (status < 400 || status >= 500) faults.push(`${text} answers ${status}`);
    }
    if ((await readControl(victim, own.slug)) !== before) faults.push('the settings have changed');
    return judged(faults.length === 0, describeFaults(faults, `${texts.length} bodies were refused.`));
  },
};

const oversized: Attack = {
  name: 'a body that is too large or too deep occupies the API',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const large = JSON.stringify({ env: [{ name: 'A', value: 'x'.repeat(3_000_000) }] });
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    const wide = `{${Array.from({ length: 100_000 }, (_, index) => `"a${index}":1`).join(',')}}`;
    const faults: string[] = [];
    for (const [name, text] of Object.entries({ large, deep, wide }))
      for (const path of ['/settings', '/notifications/webhook']) {
        const options = { method: 'PUT', headers: { 'content-type': 'application/json' }, text } as const;
        const { status } = await askOwn(victim, own, path, options);
        if (status < 400 || status >= 500) faults.push(`${name} at ${path} answers ${status}`);
      }
    const { status } = await askOwn(victim, own, '');
    if (status !== 200) faults.push(`after that, the app answers ${status}`);
    return judged(faults.length === 0, describeFaults(faults, 'Six bodies were refused.'));
  },
};

const foreignRelease: Attack = {
  name: "an author rolls back to a release that is another app's, was never reviewed, or is no commit",
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const other = await victim.liveApp();
    const served = other.status?.served?.commit;
    const commits = [
      served ?? 'a'.repeat(40),
      'a'.repeat(40),
      'HEAD',
      'refs/pull/1/head',
      '../../x',
      '*',
      '',
      'aaaaaa',
    ];
    const faults: string[] = [];
    for (const commit of commits) {
      const { status } = await askOwn(victim, own, '/rollback', { method: 'POST', json: { commit } });
      if (status < 400 || status >= 500) faults.push(`${commit} answers ${status}`);
    }
    return judged(faults.length === 0, describeFaults(faults, `${commits.length} releases were refused.`));
  },
};

const deletable = z.looseObject({ control: z.looseObject({ deleteAfter: z.string().optional() }) });

const accidentalDeletion: Attack = {
  name: 'a link, a method override or a form without the name of the app deletes it',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const { cookie, token } = await signIn(victim, own);
    const page = `/apps/${own.slug}/manage?action=delete&token=${token}&slug=${own.slug}`;
    await victim.ask(page, { headers: { cookie, accept: 'text/html' } });
    const override = { 'x-http-method-override': 'DELETE', 'x-method-override': 'DELETE' };
    await askOwn(victim, own, '?_method=DELETE', { headers: override });
    await askOwn(victim, own, '?_method=DELETE', { method: 'POST', headers: override });
    const faults: string[] = [];
    for (const slug of ['', own.slug.slice(0, -1), own.slug.toUpperCase(), await findSlug(victim)]) {
      const { status } = await sendForm(victim, own.slug, { action: 'delete', token, slug }, { cookie });
      if (status < 400) faults.push(`a form with "${slug}" answers ${status}`);
    }
    const { control } = deletable.parse(JSON.parse((await askOwn(victim, own, '')).body));
    if (control.deleteAfter !== undefined) faults.push('the app is being deleted');
    return judged(faults.length === 0, describeFaults(faults, 'The app is still there.'));
  },
};

const afterDeletion: Attack = {
  name: 'somebody other than the author restores or reads an app while it is deleted',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const { status } = await askOwn(victim, own, '', { method: 'DELETE' });
    if (status !== 200) return notTried(`The app could not be deleted: ${status}.`);
    const requests = [
      ['POST', '/restore'],
      ['GET', '/export'],
      ['GET', ''],
    ] as const;
    const faults = await listAnswered(victim, own.slug, {}, requests);
    const restored = await askOwn(victim, own, '/restore', { method: 'POST' });
    if (restored.status !== 200) return notTried(`The app could not be restored: ${restored.status}.`);
    return judged(faults.length === 0, describeFaults(faults, 'Its author alone restores it.'));
  },
};

export const authorDataAttacks: readonly Attack[] = [
  readBack,
  exported,
  echoed,
  secretNames,
  loggedSecret,
  logInjection,
  reflected,
  storedScript,
  settingsBeyondLimits,
  pollution,
  oversized,
  foreignRelease,
  accidentalDeletion,
  afterDeletion,
];
