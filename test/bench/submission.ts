// A submission as the benches make them: content of its own, pushed, submitted, and timed until it answers.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readInstallation } from '../../cli/submit/installation.ts';
import { pushSnapshot, takeSnapshot } from '../../cli/submit/snapshot.ts';
import { appUrl, baseUrl, get } from '../support/cluster.ts';

/** A repository that only this round has. */
export interface Submission {
  readonly name: string;
  readonly repo: string;
  readonly commit: string;
}

/** Each round has content of its own, so that no layer of an earlier one helps. */
function filesOf(round: string): Readonly<Record<string, string>> {
  return {
    LICENSE:
      'MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:\n\nThe above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.\n\nTHE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.\n',
    Dockerfile: `FROM python:3.13-slim-trixie\nWORKDIR /site\nRUN echo ${round} > index.html && head -c 20000000 /dev/urandom > blob\nEXPOSE 8000\nCMD ["python", "-m", "http.server", "8000"]\n`,
  };
}

/** Makes the repository and hands it on; what was made for it here is removed afterwards. */
export async function withRepository<Result>(
  name: string,
  use: (submission: Submission) => Promise<Result>,
): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-bench-'));
  for (const [file, text] of Object.entries(filesOf(name))) writeFileSync(join(folder, file), text);
  const snapshot = await takeSnapshot(folder);
  try {
    const repo = await pushSnapshot(snapshot, name, await readInstallation());
    return await use({ name, repo, commit: snapshot.commit });
  } finally {
    await snapshot.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Seconds from the submission to the first 200 through the gateway. */
export async function submitToLive({ name, repo }: Pick<Submission, 'name' | 'repo'>): Promise<number> {
  const started = performance.now();
  const answer = await get(new URL('/api/submit', baseUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ repo }),
  });
  if (answer.status !== 200) throw new Error(answer.body);
  for (;;) {
    if ((await get(appUrl(name))).status === 200) return seconds(started);
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
