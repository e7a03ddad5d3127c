// Artifacts of this installation are read wherever a tool takes a URL or HTML, and nothing else of it is.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Problem } from '../../../../../lib/problem.ts';
import { GuardedFetcher } from '../../../../../api/tools/fetch/guarded-fetcher.ts';
import { embedArtifacts, withArtifacts } from '../../../../../api/tools/inputs/artifact-links.ts';
import type { Artifact } from '../../../../../api/tools/tool.ts';

const baseUrl = 'http://localhost:8080';
const id = 'AAAAAAAAAAAAAAAAAAAAAA';
const url = `${baseUrl}/t/artifacts/${id}`;
const gone = `${baseUrl}/t/artifacts/BBBBBBBBBBBBBBBBBBBBBB`;
const file: Artifact = { bytes: Buffer.from('PNG'), mediaType: 'image/png', fileName: 'chart.png' };
const sources = { baseUrl, artifacts: { get: (one: string) => Promise.resolve(one === id ? file : undefined) } };
const data = 'data:image/png;base64,UE5H';
const isProblem =
  (slug: string, field?: string) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.type.slug === slug && (field === undefined || error.errors[0]?.field === field);

test('pictures of a page are embedded; links and text that name them stay', async () => {
  const page = `<p>${url}</p><a href="${url}">x</a><img alt="" src="${url}"><img src='${url}'><IMG width=1 SRC=${url}>
<style>p { background: url("${url}") }</style><svg><image href="${url}"/></svg><img src="https://example.org/a.png">`;
  assert.equal(
    await embedArtifacts(page, sources, 'html'),
    `<p>${url}</p><a href="${url}">x</a><img alt="" src="${data}"><img src='${data}'><IMG width=1 SRC=${data}>
<style>p { background: url("${data}") }</style><svg><image href="${data}"/></svg><img src="https://example.org/a.png">`,
  );
});

test('a page with an artifact that has expired is refused, and names the field', async () => {
  await assert.rejects(
    embedArtifacts(`<img src="${gone}">`, sources, 'markdown'),
    isProblem('unknown-file', 'markdown'),
  );
});

test('a fetcher answers for artifacts itself, within the limit', async () => {
  const fetcher = withArtifacts(new GuardedFetcher(), sources);
  const { signal } = new AbortController();
  const got = await fetcher.get({ url, maxBytes: 10, signal });
  assert.deepEqual([got.status, got.mediaType, Buffer.from(got.bytes).toString()], [200, 'image/png', 'PNG']);
  await assert.rejects(fetcher.get({ url, maxBytes: 2, signal }), isProblem('fetch-too-large'));
  await assert.rejects(fetcher.get({ url: gone, maxBytes: 10, signal }), isProblem('unknown-file', 'url'));
});

test('nothing else at the address of this installation is reached', async () => {
  const fetcher = withArtifacts(new GuardedFetcher(), sources);
  const { signal } = new AbortController();
  for (const address of [
    `${baseUrl}/t/artifacts`,
    `${baseUrl}/api/usage`,
    `${url}/x`,
    `http://localhost:8081/t/artifacts/${id}`,
  ])
    await assert.rejects(fetcher.get({ url: address, maxBytes: 10, signal }), isProblem('url-refused'));
});
