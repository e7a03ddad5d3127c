// A repository that cannot be hosted ends as rejected, with a reason that its author can act on.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterAll, test } from 'vitest';
import { baseUrl, deleteApps, get, readApp, submit, runWithCopy, runWithFiles, waitFor } from '../support/cluster.ts';

/** Made up at run time, so that this repository carries nothing that looks like a key. */
function awsKey(): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  return `AKIA${[...randomBytes(16)].map((byte) => alphabet[byte % 32]).join('')}`;
}

interface Case {
  readonly name: string;
  readonly rule: RegExp;
  readonly file?: string;
  readonly says: RegExp;
  readonly submit: (name: string) => ReturnType<typeof submit>;
}

const fixture = (folder: string) => (name: string) => runWithCopy(folder, name, (copy) => submit(copy));

const cases: readonly Case[] = [
  {
    name: 'e2e-planted-key',
    rule: /^secrets\/aws/,
    file: 'settings.py',
    says: /rotate|revoke/i,
    submit: (name) =>
      runWithFiles(
        name,
        { 'settings.py': `region = "eu-west-1"\naws_access_key_id = "${awsKey()}"\n`, 'index.html': '<p>hi</p>' },
        (folder) => submit(folder),
      ),
  },
  { name: 'e2e-no-license', rule: /^licen[cs]e\//, says: /LICENSE/, submit: fixture('no-license') },
  { name: 'e2e-failing-build', rule: /^build\//, says: /requirements/i, submit: fixture('failing-build') },
  {
    name: 'e2e-never-listens',
    rule: /^run\/never-listened$/,
    says: /port 8080 within 15s/i,
    submit: fixture('never-listens'),
  },
];

afterAll(() => deleteApps(...cases.map((one) => one.name)));

for (const one of cases) {
  test.concurrent(
    `${one.name} is rejected with its rule and its fix [spec status.rejected events.polling]`,
    async (t) => {
      const ended = await one.submit(one.name);
      assert.equal(ended.exitCode, 1, ended.all);
      // The other replica of the API sees the verdict a moment later.
      await waitFor('the verdict', async () => {
        const answer = await get(new URL(`/api/submit-status/local/${one.name}`, baseUrl));
        assert.equal(answer.status, 200, answer.body);
        assert.match(answer.body, /"status":\s*"rejected"/);
        return true;
      });
      const rejection = (await readApp(one.name)).status?.rejection;
      assert.ok(rejection !== undefined);
      assert.match(rejection.rule, one.rule);
      if (one.file !== undefined) assert.equal(rejection.file, one.file);
      assert.match(`${rejection.message} ${rejection.fix}`, one.says);
      assert.ok(ended.all.includes(rejection.fix), 'the command prints the fix');
      assert.doesNotMatch(
        JSON.stringify(rejection) + ended.all,
        /AKIA[A-Z0-9]{16}/,
        'the secret itself is not repeated',
      );
      await t.annotate(
        `${rejection.rule} ${rejection.file ?? ''}${rejection.line === undefined ? '' : `:${rejection.line}`} ${rejection.message} -> ${rejection.fix}`,
      );
    },
  );
}
