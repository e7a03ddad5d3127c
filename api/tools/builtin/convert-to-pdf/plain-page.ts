// Turns GitHub-flavored Markdown or CSV into a plainly styled HTML page to print.
import { marked } from 'marked';

const style = `
  body { font: 11pt/1.5 "Liberation Sans", "DejaVu Sans", sans-serif; color: #1a1a1a; margin: 0; overflow-wrap: anywhere; }
  h1, h2, h3, h4, h5, h6 { line-height: 1.25; margin: 1.4em 0 .5em; break-after: avoid; }
  h1:first-child, h2:first-child { margin-top: 0; }
  h1 { font-size: 20pt; } h2 { font-size: 15pt; } h3 { font-size: 12.5pt; }
  p, ul, ol, table, pre, blockquote { margin: 0 0 .8em; }
  pre, code { font-family: "Liberation Mono", "DejaVu Sans Mono", monospace; font-size: 9.5pt; background: #f4f4f4; }
  code { padding: .1em .25em; } pre { padding: .7em .9em; white-space: pre-wrap; break-inside: avoid; } pre code { padding: 0; }
  table { border-collapse: collapse; } th, td { border: 1px solid #bbb; padding: .3em .6em; text-align: left; vertical-align: top; } th { background: #f4f4f4; }
  tr, img { break-inside: avoid; } img { max-width: 100%; }
  blockquote { border-left: 3px solid #bbb; margin-left: 0; padding-left: 1em; color: #444; }
  hr { border: 0; border-top: 1px solid #bbb; } a { color: #0b57d0; }
`;

export function markdownPage(markdown: string): string {
  return pageOf(marked.parse(markdown, { async: false, gfm: true }));
}

/** LibreOffice would guess the encoding of CSV, and take some cells for formulas. */
export function tablePage(csv: string): string {
  const [head = [], ...rows] = rowsOf(csv);
  const row = (cells: readonly string[], tag: 'th' | 'td'): string =>
    `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`;
  return pageOf(
    `<table><thead>${row(head, 'th')}</thead><tbody>${rows.map((cells) => row(cells, 'td')).join('')}</tbody></table>`,
  );
}

/** One picture, as large as the paper allows. As a picture, an SVG runs nothing and loads nothing. */
export function imagePage(bytes: Uint8Array, mediaType: string): string {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  return pageOf(`<img alt="" src="data:${mediaType};base64,${data}">`);
}

function pageOf(body: string): string {
  return `<!doctype html><html><head><meta charset="utf-8"><style>${style}</style></head><body>${body}</body></html>`;
}

/** Cells by RFC 4180; between them is whichever of comma, semicolon and tab the first line has most of. */
function rowsOf(csv: string): string[][] {
  const text = csv.replace(/^\ufeff/, '').replace(/[\r\n]+$/, '');
  const firstLine = text.slice(0, 10_000).split('\n', 1)[0] ?? '';
  const [between = ','] = [',', ';', '\t'].sort((a, b) => firstLine.split(b).length - firstLine.split(a).length);
  const cell = new RegExp(`(?:"((?:[^"]|"")*)"[^${between}\\n]*|([^${between}\\n]*))(${between}|\\n|$)`, 'gy');
  const rows: string[][] = [[]];
  for (const [, quoted, bare = '', end] of text.matchAll(cell)) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? bare.replace(/\r$/, ''));
    if (end === '') break;
    if (end === '\n') rows.push([]);
  }
  return rows;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
