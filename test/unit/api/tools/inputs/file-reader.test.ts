// A file by URL, as data or from an earlier call: exactly one of them, within one limit, each read from where it is.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, it, test } from 'vitest';
import { buildArtifactUrl, createArtifactId } from '../../../../../api/tools/engine/artifacts.ts';
import { GuardedFetcher } from '../../../../../api/tools/fetch/fetcher.ts';
import type { GivenFile } from '../../../../../api/tools/inputs/fields.ts';
import {
  type FileSources,
  type InputFile,
  readFile,
  embedArtifacts,
  createArtifactFetcher,
} from '../../../../../api/tools/inputs/file-reader.ts';
import type { Artifact } from '../../../../../api/tools/tool.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { page, startWeb, type Web } from '../../../../support/tools/fetch/web.ts';

const baseUrl = 'https://moorage.localhost:8443';
const id = createArtifactId();
const stored: Artifact = { bytes: Buffer.from('deck'), mediaType: 'application/x-deck', fileName: 'slides.pptx' };

describe('readFile', () => {
  let web: Web;
  let sources: FileSources;
  const asked: string[] = [];
  const read = async (given: GivenFile, maxBytes = 100): Promise<InputFile> =>
    readFile(sources, given, { maxBytes, signal: new AbortController().signal });
  const refuses = async (
    given: GivenFile,
    { slug, field, words, fix }: { slug: string; field: string; words: RegExp; fix: RegExp },
  ): Promise<void> =>
    assert.rejects(read(given), (error) => {
      assert.ok(error instanceof Problem, String(error));
      const [first] = error.errors;
      assert.deepEqual([error.type.slug, first?.field], [slug, field], error.message);
      assert.match(`${error.message} ${first?.message ?? ''}`, words);
      assert.match(first?.fix ?? '', fix);
      return true;
    });

  beforeAll(async () => {
    web = await startWeb({ '/a/report.pdf': page('Application/PDF; version=1', 'pdf') });
    sources = {
      baseUrl,
      fetcher: new GuardedFetcher({ allow: [web.host] }),
      artifacts: {
        get: (name) => {
          asked.push(name);
          return Promise.resolve(name === id ? stored : undefined);
        },
      },
    };
  });
  afterAll(() => web.close());

  it('fetches a URL', async () => {
    const { bytes, ...rest } = await read({ url: `${web.url}/a/report.pdf` });
    assert.equal(Buffer.from(bytes).toString(), 'pdf');
    assert.deepEqual(rest, {
      mediaType: 'application/pdf',
      contentType: 'Application/PDF; version=1',
      url: `${web.url}/a/report.pdf`,
      fileName: 'report.pdf',
      local: false,
    });
  });

  it('reads an artifact by its id, its path or its URL, and never over the network', async () => {
    const addresses: GivenFile[] = [
      { artifact: id },
      { artifact: `/t/artifacts/${id}` },
      { artifact: buildArtifactUrl(baseUrl, id) },
      { artifact: `HTTPS://MOORAGE.localhost:8443/t/artifacts/${id}?x=1#y` },
      { url: buildArtifactUrl(baseUrl, id) },
    ];
    for (const given of addresses) {
      const { bytes, ...rest } = await read(given);
      assert.equal(Buffer.from(bytes).toString(), 'deck', JSON.stringify(given));
      assert.deepEqual(rest, {
        mediaType: 'application/x-deck',
        contentType: 'application/x-deck',
        url: buildArtifactUrl(baseUrl, id),
        fileName: 'slides.pptx',
        local: true,
      });
    }
  });

  it('treats nothing else as an artifact', async () => {
    asked.length = 0;
    for (const artifact of [
      'x',
      `${id}x`,
      `https://other.example/t/artifacts/${id}`,
      `https://moorage.localhost/t/artifacts/${id}`,
      `//moorage.localhost:8444/t/artifacts/${id}`,
      `${baseUrl}/t/artifacts/${id}/..`,
      `${baseUrl}/t/artifacts/`,
      `${baseUrl}/api/models`,
      'http://127.0.0.1/',
      'data:,x',
    ])
      await refuses(
        { artifact },
        {
          slug: 'invalid-request',
          field: 'artifact',
          words: /neither the id nor the URL/,
          fix: /\/t\/artifacts\/<id>/,
        },
      );
    assert.deepEqual(asked, []);
    for (const url of [`${baseUrl}/t/artifacts/x`, `https://moorage.localhost/t/artifacts/${id}`, id])
      await refuses({ url }, { slug: 'url-refused', field: 'url', words: /url/, fix: /public/ });
    assert.deepEqual(asked, []);
  });

  it('reports that a file has expired', async () => {
    const gone = createArtifactId();
    const said = { slug: 'unknown-file', words: /expired/, fix: /Call the tool/ };
    await refuses({ artifact: gone }, { ...said, field: 'artifact' });
    await refuses({ url: buildArtifactUrl(baseUrl, gone) }, { ...said, field: 'url' });
  });

  it('limits their total size in bytes', async () => {
    const signal = new AbortController().signal;
    for (const [given, slug] of [
      [{ url: `${web.url}/a/report.pdf` }, 'fetch-too-large'],
      [{ data: 'AAAA' }, 'tool-limit'],
      [{ artifact: id }, 'tool-limit'],
    ] as const) {
      await readFile(sources, given, { maxBytes: 4, signal });
      await assert.rejects(readFile(sources, given, { maxBytes: 2, signal }), (error) => {
        assert.ok(error instanceof Problem, String(error));
        assert.equal(error.type.slug, slug);
        assert.equal(error.members['limit_bytes'], 2);
        return true;
      });
    }
  });

  it('requires exactly one', async () => {
    const said = { slug: 'invalid-request', fix: /^Send exactly one of url, data and artifact\.$/ };
    await refuses({}, { ...said, field: 'url', words: /is missing, and so are data and artifact/ });
    await refuses({ url: web.url, data: 'AAAA' }, { ...said, field: 'data', words: /cannot be combined with url/ });
    await refuses(
      { data: 'AAAA', artifact: id },
      { ...said, field: 'artifact', words: /cannot be combined with data/ },
    );
  });
});

// Artifacts of this installation are read wherever a tool takes a URL or HTML, and nothing else of it is.

const localUrl = 'http://localhost:8080';
const fileId = 'AAAAAAAAAAAAAAAAAAAAAA';
const url = `${localUrl}/t/artifacts/${fileId}`;
const gone = `${localUrl}/t/artifacts/BBBBBBBBBBBBBBBBBBBBBB`;
const file: Artifact = { bytes: Buffer.from('PNG'), mediaType: 'image/png', fileName: 'chart.png' };
const sources = {
  baseUrl: localUrl,
  artifacts: { get: (one: string) => Promise.resolve(one === fileId ? file : undefined) },
};
const data = 'data:image/png;base64,UE5H';
const isProblem =
  (slug: string, field?: string) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.type.slug === slug && (field === undefined || error.errors[0]?.field === field);

test('embeds the pictures of a page, and keeps links and text that mention them', async () => {
  const page = `<p>${url}</p><a href="${url}">x</a><img alt="" src="${url}"><img src='${url}'><IMG width=1 SRC=${url}>
<style>p { background: url("${url}") }</style><svg><image href="${url}"/></svg><img src="https://example.org/a.png">`;
  assert.equal(
    await embedArtifacts(page, sources, 'html'),
    `<p>${url}</p><a href="${url}">x</a><img alt="" src="${data}"><img src='${data}'><IMG width=1 SRC=${data}>
<style>p { background: url("${data}") }</style><svg><image href="${data}"/></svg><img src="https://example.org/a.png">`,
  );
});

test('rejects a page with an expired artifact, and names the field', async () => {
  await assert.rejects(
    embedArtifacts(`<img src="${gone}">`, sources, 'markdown'),
    isProblem('unknown-file', 'markdown'),
  );
});

test('reads artifacts itself, within the limit', async () => {
  const fetcher = createArtifactFetcher(new GuardedFetcher(), sources);
  const { signal } = new AbortController();
  const got = await fetcher.get({ url, maxBytes: 10, signal });
  assert.deepEqual([got.status, got.mediaType, Buffer.from(got.bytes).toString()], [200, 'image/png', 'PNG']);
  await assert.rejects(fetcher.get({ url, maxBytes: 2, signal }), isProblem('fetch-too-large'));
  await assert.rejects(fetcher.get({ url: gone, maxBytes: 10, signal }), isProblem('unknown-file', 'url'));
});

test('reaches nothing else at the installation’s own address', async () => {
  const fetcher = createArtifactFetcher(new GuardedFetcher(), sources);
  const { signal } = new AbortController();
  for (const address of [
    `${localUrl}/t/artifacts`,
    `${localUrl}/api/usage`,
    `${url}/x`,
    `http://localhost:8081/t/artifacts/${fileId}`,
  ])
    await assert.rejects(fetcher.get({ url: address, maxBytes: 10, signal }), isProblem('url-refused'));
});
