// A submission as the benches make them: content of its own, pushed, submitted, and timed until it answers.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { readInstallation } from '../../cli/submit/installation.ts';
import { pushSnapshot, takeSnapshot } from '../../cli/submit/snapshot.ts';
import { appUrl, baseUrl, get } from '../support/cluster.ts';

/** A repository that only this round has. */
export interface Submission {
  readonly name: string;
  readonly repo: string;
  readonly commit: string;
}

const license = readFileSync('test/fixtures/static/LICENSE', 'utf8');

/** Each round has content of its own, so that no layer of an earlier one helps. */
function writeDockerApp(round: string): Readonly<Record<string, string>> {
  return {
    LICENSE: license,
    Dockerfile: `FROM python:3.13-slim-trixie\nWORKDIR /site\nRUN echo ${round} > index.html && head -c 20000000 /dev/urandom > blob\nEXPOSE 8000\nCMD ["python", "-m", "http.server", "8000"]\n`,
  };
}

/** Apps without a Dockerfile, with packages, whose page is the word. */
export const plannedApps: Readonly<Record<string, (word: string) => Readonly<Record<string, string>>>> = {
  python: (word) => ({
    LICENSE: license,
    'requirements.txt': 'flask==3.1.2\nrequests==2.32.5\ngunicorn==23.0.0\n',
    'app.py': `from flask import Flask\nimport requests\n\napp = Flask(__name__)\n\n\n@app.get("/")\ndef home():\n    return "<p>${word}</p>"\n`,
  }),
  node: (word) => ({
    LICENSE: license,
    'package.json': `${JSON.stringify({ name: 'bench', version: '1.0.0', private: true, scripts: { start: 'node server.js' }, dependencies: { express: '5.1.0' } })}\n`,
    'server.js': `const app = require('express')();\napp.get('/', (_, response) => response.type('html').send('<p>${word}</p>'));\napp.listen(process.env.PORT || 3000);\n`,
  }),
  /** Three, of which the second push changes two that share an image. */
  components: (word) => ({
    LICENSE: license,
    'moorage.yaml': `components:\n  - {name: page, path: page, dependsOn: [api]}\n  - {name: api, path: api, port: 8000, route: {path: /api}}\n  - {name: beat, kind: worker, image: api, command: [python, -u, beat.py]}\n`,
    'page/package.json': `${JSON.stringify({ name: 'page', version: '1.0.0', private: true, scripts: { start: 'node server.js' }, dependencies: { express: '5.1.0' } })}\n`,
    'page/server.js': `const app = require('express')();\napp.get('/', async (_, response) => response.type('html').send(await (await fetch('http://api:8000')).text()));\napp.listen(process.env.PORT);\n`,
    'api/requirements.txt': 'flask==3.1.2\ngunicorn==23.0.0\n',
    'api/app.py': `from flask import Flask\n\napp = Flask(__name__)\n\n\n@app.get("/")\ndef home():\n    return "<p>${word}</p>"\n`,
    'api/beat.py': 'import time\n\nwhile True:\n    time.sleep(1)\n',
  }),
};

/** Makes the repository and hands it on; what was made for it here is removed afterwards. */
export async function withRepository<Result>(
  name: string,
  use: (submission: Submission) => Promise<Result>,
): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-bench-'));
  try {
    return await use(await push(name, folder, writeDockerApp(name)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Writes the files into the folder and pushes a commit with them on top of the one before, as an author does. */
export async function push(name: string, folder: string, files: Readonly<Record<string, string>>): Promise<Submission> {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  const git = (...args: string[]): Promise<unknown> =>
    execa('git', ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost', ...args], { cwd: folder });
  if (!existsSync(join(folder, '.git'))) await git('init', '--quiet');
  await git('add', '--all');
  await git('commit', '--quiet', '--message', 'change');
  const snapshot = await takeSnapshot(folder);
  try {
    return { name, repo: await pushSnapshot(snapshot, name, await readInstallation()), commit: snapshot.commit };
  } finally {
    await snapshot.remove();
  }
}

/** Seconds from the submission until the page shows the word. */
export async function submitToWord({ name, repo }: Pick<Submission, 'name' | 'repo'>, word: string): Promise<number> {
  return submitUntil({ name, repo }, (answer) => answer.status === 200 && answer.body.includes(word));
}

/** Seconds from the submission to the first 200 through the gateway. */
export async function submitToLive(submission: Pick<Submission, 'name' | 'repo'>): Promise<number> {
  return submitUntil(submission, ({ status }) => status === 200);
}

async function submitUntil(
  { name, repo }: Pick<Submission, 'name' | 'repo'>,
  isWanted: (answer: Awaited<ReturnType<typeof get>>) => boolean,
): Promise<number> {
  const started = performance.now();
  const answer = await get(new URL('/api/submit', baseUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ repo }),
  });
  if (answer.status !== 200) throw new Error(answer.body);
  for (;;) {
    if (isWanted(await get(appUrl(name)))) return seconds(started);
    const status = await get(new URL(`/api/submit-status/local/${name}`, baseUrl));
    if (status.body.includes('"rejected"')) throw new Error(status.body);
    await sleep(100);
  }
}

/** Seconds since a moment of performance.now(). */
export function seconds(started: number): number {
  return (performance.now() - started) / 1000;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
