// convert_to_pdf and screenshot against a real Gotenberg: what they make is opened, and what strangers send reaches
// nothing inside.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { page, type Page } from '../../support/tools/fetch/web.ts';
import { pdf as plainPdf } from '../../support/tools/pdf.ts';
import { attackFiles, attackPage, controls, fileAttacks } from '../../support/tools/gotenberg-attacks.ts';
import { startGotenbergLab, type GotenbergLab } from '../../support/tools/gotenberg-lab.ts';
import { docx, odp, ods, odt, pptx, xlsx } from '../../support/tools/office-files.ts';

const pages: Record<string, Page> = {};
let lab: GotenbergLab;
beforeAll(async () => {
  lab = await startGotenbergLab(pages);
});
afterAll(async () => {
  await lab.stop();
});

const office = 'application/octet-stream';
const serve = (path: string, served: Page): string => {
  pages[path] = served;
  return `${lab.web.url}${path}`;
};

describe('convert_to_pdf', () => {
  it('[spec tools.convert-to-pdf] prints HTML with its colours, letters and pages', async () => {
    const html =
      '<title>x</title><h1>Grüße, Ωκεανός, Привет</h1><div style="break-before:page">second</div><script>document.body.append(6 * 7)</script>';
    const { result, artifact, read, text } = await lab.pdf({ html, format: 'a5', landscape: true });
    assert.deepEqual(result, { source: 'html', pages: 2, bytes: artifact.bytes.length });
    assert.deepEqual([artifact.mediaType, artifact.fileName, read.total_pages], ['application/pdf', 'document.pdf', 2]);
    assert.match(text, /Grüße, Ωκεανός, Привет[^]*second[^]*42/);
    // 210 × 148 mm in points.
    assert.match(
      Buffer.from(artifact.bytes).toString('latin1'),
      /MediaBox \[0 0 59[45](?:\.\d+)? 4(?:19|20)(?:\.\d+)?\]/,
    );
  });

  it('prints markdown with its tables', async () => {
    const { result, text } = await lab.pdf({
      markdown: '# Packing list\n\n| box | holds |\n|---|---|\n| 1 | **lamps** |\n\n- [x] closed',
    });
    assert.deepEqual([result['source'], result['pages']], ['markdown', 1]);
    for (const word of ['Packing list', 'holds', 'lamps', 'closed']) assert.match(text, new RegExp(word));
    assert.doesNotMatch(text, /[|*#]/);
  });

  it('prints a web page after its redirects and scripts, and only the requested pages', async () => {
    const url = serve(
      '/long',
      page(
        'text/html; charset=iso-8859-1',
        Buffer.from(
          '<p>caf\xe9</p><div style="break-before:page">two</div><div style="break-before:page" id=x></div><script>setTimeout(() => { x.textContent = "late" }, 300)</script>',
          'latin1',
        ),
      ),
    );
    serve('/from', (_request, response) => {
      response.writeHead(302, { location: '/long' }).end();
    });
    const { result, text } = await lab.pdf({ url: `${lab.web.url}/from`, wait_ms: 1_000 });
    assert.deepEqual([result['source'], result['url'], result['pages']], ['page', url, 3]);
    assert.match(text, /café[^]*two[^]*late/);
    assert.equal((await lab.pdf({ url, pages: '1-2' })).result['pages'], 2);
    await lab.refuses(lab.convert, { url, pages: '7-9' }, 'unprocessable', /page ranges in pages do not exist/);
  });

  const sentence = 'The quick harbour crane lifts nine boxes';
  const files: Record<string, () => Promise<Uint8Array | string>> = {
    docx: () => docx(sentence),
    xlsx: () => xlsx(['=1+2', sentence]),
    pptx: () => pptx(sentence),
    odt: () => odt(sentence),
    ods: () => ods(sentence),
    odp: () => odp(sentence),
    rtf: () => Promise.resolve(`{\\rtf1\\ansi ${sentence}}`),
  };
  for (const [kind, make] of Object.entries(files)) {
    it(`converts ${kind}, detected from its bytes alone`, async () => {
      const { result, text } = await lab.pdf({ url: serve(`/file-${kind}`, page(office, await make())) });
      assert.equal(result['source'], 'office');
      assert.match(text.replaceAll('\n', ' '), new RegExp(sentence.replaceAll(' ', '\\s+')));
    });
  }

  it('converts text and CSV in the encoding that their server states', async () => {
    const latin = Buffer.from('Stra\xdfe,Ort\n"Am ""Kai"", <b>1</b>",M\xfcnchen\n', 'latin1');
    assert.match(
      (await lab.pdf({ url: serve('/a.csv', page('text/csv; charset=windows-1252', latin)) })).text,
      /Straße\s+Ort\s+Am "Kai", <b>1<\/b>\s+München/,
    );
    assert.match((await lab.pdf({ url: serve('/a.txt', page('text/plain', latin)) })).text, /Straße,Ort/);
    const markdown = await lab.pdf({ url: serve('/a.md', page('text/plain', '# Title\n\nfirst')) });
    assert.equal(markdown.result['source'], 'markdown');
    assert.doesNotMatch(markdown.text, /#/);
  });

  it('converts inline data of any type', async () => {
    const base64 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString('base64');
    const picture = await sharp({ create: { width: 60, height: 40, channels: 3, background: '#d33' } })
      .png()
      .toBuffer();
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="300" height="60"><text y="30">Drawn</text></svg>';
    const cases: readonly (readonly [data: string, source: string, text: RegExp])[] = [
      [base64('<!doctype html><h1>Page</h1>'), 'page', /Page/],
      [`data:text/html;charset=windows-1252,%3Ch1%3EStra%DFe%3C/h1%3E`, 'page', /Straße/],
      [base64(picture), 'image', /^$/],
      [base64(svg), 'image', /Drawn/],
      [`data:text/markdown;base64,${base64('# Title\n\n**bold**')}`, 'markdown', /Title[^]*bold/],
      [`data:text/csv,a,b%0A1,2`, 'csv', /a[^]*b[^]*1[^]*2/],
      [`data:text/plain;base64,${base64('plain words')}`, 'office', /plain words/],
      [base64(await docx('Office words')), 'office', /Office words/],
    ];
    for (const [data, source, words] of cases) {
      const { result, text } = await lab.pdf({ data });
      assert.deepEqual([result['source'], result['pages'], result['url']], [source, 1, undefined], data.slice(0, 60));
      assert.match(text, words, data.slice(0, 60));
    }
    await lab.refuses(lab.convert, { data: base64('just words') }, 'unprocessable', /data:text\/markdown/);
  });

  it('requires exactly one input, and explains what is wrong with it', async () => {
    await lab.refuses(lab.convert, {}, 'invalid-request', /is missing/);
    await lab.refuses(
      lab.convert,
      { html: 'a', markdown: 'b' },
      'invalid-request',
      /"markdown" cannot be combined with html/,
    );
    await lab.refuses(
      lab.convert,
      { url: serve('/a.pdf', page('application/pdf', plainPdf(['x']))) },
      'unprocessable',
      /already a PDF/,
    );
    await lab.refuses(
      lab.convert,
      { url: serve('/lying.docx', page('application/msword', Buffer.from([0, 1, 2, 3, 4, 5]))) },
      'unprocessable',
      /application\/msword .* not supported/,
    );
    await lab.refuses(
      lab.convert,
      { url: serve('/cut.docx', page(office, (await docx('x')).subarray(0, 900))) },
      'unprocessable',
      /not supported|cannot convert/,
    );
    await lab.refuses(lab.convert, { url: serve('/empty', page('text/html', '')) }, 'unprocessable', /empty/);
    await lab.refuses(lab.convert, { url: `${lab.web.url}/missing` }, 'fetch-failed', /404/);
    await lab.refuses(lab.convert, { url: `http://127.0.0.1:${lab.listener.port}/` }, 'url-refused', /url/);
  });

  it('stops an endless script, and continues', async () => {
    const impatient = await startGotenbergLab({}, { seconds: 5, office: false });
    try {
      const html = '<script>for (;;);</script>';
      await impatient.refuses(impatient.convert, { html }, 'tool-limit', /longer than one call may/);
      assert.match((await impatient.pdf({ html: 'alive' })).text, /alive/);
    } finally {
      await impatient.stop();
    }
  });
});

describe('screenshot', () => {
  it('[spec tools.screenshot] shows a page as rendered', async () => {
    const url = serve(
      '/red',
      page(
        'text/html',
        '<body style="margin:0;background:#f00"><div style="height:50px;background:#00f"></div><div style="height:2000px"></div><script>document.title = 1</script>',
      ),
    );
    for (const format of ['png', 'jpeg', 'webp'] as const) {
      const { result, artifact } = await lab.picture({ url, width: 400, height: 300, format });
      assert.deepEqual(result, { url, format, width: 400, height: 300, bytes: artifact.bytes.length });
      assert.deepEqual(
        [artifact.mediaType, artifact.fileName],
        [`image/${format}`, `screenshot.${format === 'jpeg' ? 'jpg' : format}`],
      );
      const picture = sharp(artifact.bytes);
      assert.equal((await picture.metadata()).format, format);
      const { data, info } = await picture.removeAlpha().raw().toBuffer({ resolveWithObject: true });
      const pixel = (x: number, y: number): string =>
        [...data.subarray((y * info.width + x) * 3, (y * info.width + x) * 3 + 3)]
          .map((value) => (value > 200 ? 'f' : value < 50 ? '0' : '?'))
          .join('');
      assert.deepEqual(
        [pixel(10, 10), pixel(399, 40), pixel(10, 100), pixel(399, 299)],
        ['00f', '00f', 'f00', 'f00'],
        format,
      );
    }
    const whole = await lab.picture({ url, width: 400, height: 300, full_page: true });
    assert.deepEqual([whole.result['width'], whole.result['height']], [400, 2_050]);
  });

  it('explains why there is no screenshot', async () => {
    await lab.refuses(lab.screenshot, { url: `${lab.web.url}/missing` }, 'fetch-failed', /404/);
  });
});

describe('printing untrusted documents', () => {
  it('reaches the web by every route that is tested below', async () => {
    await lab.pdf({ html: attackPage(lab.web.url), wait_ms: 2_000 });
    const missing = controls.filter((path) => !lab.web.asked.some((asked) => asked.endsWith(path)));
    assert.deepEqual(missing, []);
  });

  it('reaches no internal address by any route: request, fetch or redirect', async () => {
    const inside = `http://127.0.0.1:${lab.listener.port}`;
    serve('/to', (request, response) => {
      response.writeHead(302, { location: decodeURIComponent((request.url ?? '').replace('/to?', '')) }).end();
    });
    await lab.pdf({ html: attackPage(inside), wait_ms: 2_000 });
    await lab.pdf({ html: attackPage(`http://[::1]:${lab.listener.port}`), wait_ms: 1_000 });
    await lab.pdf({ html: attackPage(`http://localhost:${lab.listener.port}`), wait_ms: 1_000 });
    await lab.pdf({ html: attackPage(`${lab.web.url}/to?${inside}`), wait_ms: 1_000 });
    await lab.pdf({ url: serve('/attack', page('text/html', attackPage(inside))), wait_ms: 1_000 });
    await lab.pdf({ data: Buffer.from(attackPage(inside)).toString('base64'), wait_ms: 1_000 });
    await lab.pdf({
      data: `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script href="${inside}/s"/><image href="${inside}/i" width="9" height="9"/><foreignObject width="9" height="9"><iframe xmlns="http://www.w3.org/1999/xhtml" src="${inside}/f"/></foreignObject></svg>`)}`,
      wait_ms: 500,
    });
    await lab.picture({ url: `${lab.web.url}/attack`, wait_ms: 1_000 });
    for (const way of [
      `<meta http-equiv=refresh content="0;url=${inside}">`,
      `<script>location = "${inside}"</script>`,
    ])
      await lab.pdf({ html: way, wait_ms: 500 }).catch(() => undefined);
    assert.deepEqual([lab.listener.connections(), lab.listener.datagrams()], [0, 0]);
  });

  it('shows no file of the machine', async () => {
    const secret = '/tmp/moorage-gotenberg-secret.html';
    writeFileSync(secret, 'SECRET-7291');
    try {
      for (const html of fileAttacks(['/etc/passwd', '/proc/self/environ', secret])) {
        const { text } = await lab.pdf({ html, wait_ms: 500 }).catch(() => ({ text: '' }));
        assert.doesNotMatch(text, /root:|PATH=|SECRET/, html);
      }
    } finally {
      rmSync(secret);
    }
  });

  it('loads nothing that office files link to, from the web, from inside or from the machine', async () => {
    const [text, picture] = ['/tmp/moorage-gotenberg-secret.txt', '/tmp/moorage-gotenberg-secret.svg'];
    writeFileSync(text, 'SECRET-7291\n');
    writeFileSync(
      picture,
      '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="50"><text y="30">SECRET-7291</text></svg>',
    );
    try {
      const before = lab.web.asked.length;
      for (const [name, { bytes, mediaType }] of Object.entries(
        await attackFiles([`http://127.0.0.1:${lab.listener.port}`, lab.web.url], [text, picture]),
      )) {
        const read = await lab.pdf({ url: serve(`/${name}`, page(mediaType, bytes)) });
        assert.match(read.text, /Innocent/, name);
        assert.doesNotMatch(read.text, /SECRET|root:/, name);
      }
      assert.deepEqual(
        lab.web.asked.slice(before).filter((asked) => !/\/attack-[a-z-]+\.[a-z]+$/.test(asked)),
        [],
      );
      assert.deepEqual([lab.listener.connections(), lab.listener.datagrams()], [0, 0]);
    } finally {
      rmSync(text);
      rmSync(picture);
    }
  });
});
