// A git server that lies, floods or leads elsewhere: the question ends with an answer that says so, and nothing of it
// is believed.
import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'vitest';
import { resolveRevision, type RevisionResult } from '../../../../../controller/steps/source/source.ts';
import { parseRepository } from '../../../../../lib/repository.ts';

const commit = 'a'.repeat(40);
const packet = (text: string): string => `${(Buffer.byteLength(text) + 4).toString(16).padStart(4, '0')}${text}`;
const capabilities = `${packet('# service=git-upload-pack\n')}0000${packet('version 2\n')}${packet('ls-refs=unborn\n')}${packet('fetch\n')}0000`;

interface Lies {
  /** Answers the first request, for capabilities. */
  readonly greet?: (response: ServerResponse) => void;
  /** Answers the second one, for references. */
  readonly list?: (response: ServerResponse) => void;
}

/** What is made of a server on loopback that behaves like this. */
async function ask(
  { greet = (response) => response.end(capabilities), list = (response) => response.end('0000') }: Lies,
  revision?: string,
): Promise<RevisionResult> {
  const server = createServer((request, response) => {
    request.resume();
    const isFirst = request.url?.includes('/info/refs') === true;
    response.setHeader(
      'content-type',
      isFirst ? 'application/x-git-upload-pack-advertisement' : 'application/x-git-upload-pack-result',
    );
    (isFirst ? greet : list)(response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const repository = parseRepository(`http://${host}/octo/chat`, { allowed: [host], insecure: [host] });
    return await resolveRevision({ repository, revision });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function refused(answer: RevisionResult): RevisionResult & { ok: false } {
  assert.ok(!answer.ok, 'an answer was believed');
  return answer;
}

test('reads the references of an honest server', async () => {
  const answer = await ask({
    list: (response) => response.end(`${packet(`${commit} HEAD symref-target:refs/heads/main\n`)}0000`),
  });
  assert.deepEqual(answer, { ok: true, commit, reference: 'refs/heads/main' });
});

test('endless references do not fill the memory', async () => {
  const many = packet(`${commit} refs/heads/${'x'.repeat(900)}\n`).repeat(500);
  const answer = refused(
    await ask({
      list(response) {
        const more = (): void => {
          while (!response.destroyed) {
            if (!response.write(many)) {
              response.once('drain', more);
              return;
            }
          }
        };
        more();
      },
    }),
  );
  assert.match(answer.message, /more references than there is memory for/);
  assert.equal(answer.final, false);
});

test('does not follow a redirect to an internal address', async () => {
  let asked = 0;
  const inside = createServer((_request, response) => {
    asked += 1;
    response.end(capabilities);
  });
  await new Promise<void>((resolve) => {
    inside.listen(0, '127.0.0.1', resolve);
  });
  const location = `http://127.0.0.1:${(inside.address() as AddressInfo).port}/octo/chat/info/refs?service=git-upload-pack`;
  const answer = refused(await ask({ greet: (response) => response.writeHead(302, { location }).end() }));
  inside.close();
  assert.equal(answer.rule, 'source/repository-moved');
  assert.equal(asked, 0);
});

test("removes escape sequences from a server's error message", async () => {
  const answer = refused(
    await ask({ list: (response) => response.end(packet('ERR \u001b]0;owned\u0007\u001b[2Jgone\u202e away\r\n')) }),
  );
  assert.match(answer.message, /gone away/);
  assert.doesNotMatch(answer.message, /[^\x20-\x7e]/);
});

for (const [name, list] of [
  ['no default branch', '0000'],
  ['a default branch that is not there', `${packet('unborn HEAD symref-target:refs/heads/main\n')}0000`],
  ['another reference than was asked for', `${packet(`${commit} refs/heads/evil\n`)}0000`],
  ['a commit that is none', `${packet('$(id) HEAD\n')}0000`],
  ['a name with a tab', `${packet(`${commit} refs/x\tHEAD\n`)}0000`],
  ['nonsense', 'zzzz not a packet'],
  ['nothing', ''],
] as const) {
  test(`resolves no commit from ${name}`, async () => {
    refused(await ask({ list: (response) => response.end(list) }));
  });
}

for (const [name, revision] of [
  ['an option', '--upload-pack=id'],
  ['a pattern', '*'],
  ['a range', 'main..evil'],
] as const) {
  test(`finds nothing for a revision that is ${name}`, async () => {
    refused(
      await ask(
        {
          list: (response) => response.end(`${packet(`${commit} HEAD\n`)}${packet(`${commit} refs/heads/evil\n`)}0000`),
        },
        revision,
      ),
    );
  });
}
