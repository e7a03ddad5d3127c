// SVG is cleaned of what could run or reach out, and keeps what it shows.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { cleanSvg, createRemoved } from '../../../../../api/tools/svg/clean.ts';

const svg = (inner: string): string =>
  `<?xml version="1.0"?><!DOCTYPE svg PUBLIC "a" "b"><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 1 1">${inner}</svg>`;

const hostile = [
  '<script>alert(1)</script>',
  '<SCRIPT>alert(1)</SCRIPT>',
  '<script xlink:href="https://evil.test/x.js"/>',
  '<rect onclick="alert(1)" onload = "x"/>',
  '<a xlink:href="javascript:alert(1)"><text>x</text></a>',
  '<a href="&#106;avascript:alert(1)"><text>x</text></a>',
  '<a href=" java&#x0a;script:alert(1)"><text>x</text></a>',
  '<a href="data:text/html,evil"><text>x</text></a>',
  '<set attributeName="href" to="javascript:alert(1)"/>',
  '<animate attributeName="href" values="javascript:alert(1)"/>',
  '<image href="https://evil.test/x.png"/>',
  '<image xlink:href="file:///etc/passwd"/>',
  '<image href="data:image/svg+xml;base64,AAAA"/>',
  '<use href="https://evil.test/x.svg#a"/>',
  '<style>@import url("https://evil.test/x.css"); a { background: url(https://evil.test/x) }</style>',
  '<style><![CDATA[@import "https://evil.test/x.css";]]></style>',
  '<style>a { background: u\\72l(https://evil.test/x) }</style>',
  '<rect style="fill: url(https://evil.test/x)"/>',
  '<rect fill="url(//evil.test/x)"/>',
  '<rect style="fill:u\\72l(//evil.test/x)"/>',
  '<foreignObject><iframe src="https://evil.test"/><div onclick="alert(1)">t</div><object data="https://evil.test"/><embed src="https://evil.test"/><form action="https://evil.test"/><img src="https://evil.test/x" onerror="alert(1)"/></foreignObject>',
  '<?xml-stylesheet href="https://evil.test/x.css"?>',
  '<style>a{background:image-set("https://evil.test/x" 1x)}</style>',
  '<style>&lt;/style>&lt;script>alert(1)&lt;/script></style>',
  '<text><![CDATA[</text><script>alert(1)</script>]]></text>',
  '<feImage href="https://evil.test/x"/>',
];
for (const inner of hostile) {
  test(`removes ${inner}`, () => {
    const clean = cleanSvg(svg(inner));
    assert.match(clean, /^<svg[^>]*viewBox/);
    // As text it may stand, escaped; as a tag, an attribute or an address it may not.
    assert.doesNotMatch(
      clean,
      /<(script|iframe|object|embed|form|img|set|animate|feImage)|<[^>]*\son\w+\s*=|(href|src)="[^#"][^"]*(evil|script|passwd|data:)|url\([^)]*evil|import|image-set|<\?|<!/i,
    );
  });
}

test('keeps harmless content unchanged', () => {
  const inner =
    '<style>.a{fill:url(#g);src:url("data:application/font-woff;base64,AAAA")}</style><a xlink:href="https://good.test/?a=1&amp;b=2"><text xml:space="preserve"> a &lt; b &amp; c &#20320; </text></a><use href="#g"/><image href="data:image/png;base64,AAAA"/><path d="M0,0L1,1" marker-end="url(#m)"/><foreignObject><div class="md"><h1>T</h1><br/></div></foreignObject>';
  const clean = cleanSvg(svg(inner));
  for (const part of [
    'fill:url(#g)',
    'base64,AAAA&quot;)',
    'href="https://good.test/?a=1&amp;b=2"',
    '> a &lt; b &amp; c &#20320; </text>',
    '<use href="#g"/>',
    'data:image/png;base64,AAAA',
    'marker-end="url(#m)"',
    '<h1>T</h1><br/>',
  ])
    assert.ok(clean.includes(part), `${part} in ${clean}`);
  assert.equal(cleanSvg(clean), clean);
});

test('does not expand entities of a document type', () => {
  const bomb = `<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><svg><text>&c;</text></svg>`;
  const clean = ((): string => {
    try {
      return cleanSvg(bomb);
    } catch {
      return '';
    }
  })();
  assert.ok(clean.length < 200);
});

test('reports what was removed', () => {
  const removed = createRemoved();
  cleanSvg(
    svg(
      '<script>x</script><rect onclick="x"/><a href="javascript:x"><text>t</text></a><image href="https://evil.test/x.png"/><style>@import url(x.css); a { fill: url(https://evil.test/y) }</style><metadata/>',
    ),
    removed,
  );
  assert.deepEqual([...removed.images], ['https://evil.test/x.png']);
  assert.deepEqual(
    [...removed.others],
    ['<script>', 'the attribute onclick', 'the link javascript:x', '@import url(x.css);', 'url(https://evil.test/y)'],
  );
  const nothing = createRemoved();
  cleanSvg(svg('<g><a href="https://good.test/"><text>t</text></a></g>'), nothing);
  assert.deepEqual(nothing, createRemoved());
});
