// Source documents of a PDF: detects their kind, and turns Markdown, CSV and images into a plainly styled page to
// print. The kind follows from the bytes where they are distinctive, then from the media type that the server reports,
// and without one from the beginning of the text.
import { marked } from 'marked';

export type DocumentKind =
  | { readonly printed: 'page' | 'markdown' | 'csv' | 'pdf' | 'unknown' }
  | { readonly printed: 'image'; readonly mediaType: string }
  | { readonly printed: 'office'; readonly extension: string };

const pageKind: DocumentKind = { printed: 'page' };
const unknownKind: DocumentKind = { printed: 'unknown' };
const toOfficeKind = (extension: string): DocumentKind => ({ printed: 'office', extension });

/** Extensions of OpenDocument files by media type, which is the first entry of the archive. */
const openDocumentExtensions: Readonly<Record<string, string>> = {
  'application/vnd.oasis.opendocument.text': 'odt',
  'application/vnd.oasis.opendocument.spreadsheet': 'ods',
  'application/vnd.oasis.opendocument.presentation': 'odp',
};
/** Extensions of Office Open XML files by a folder that only they contain. */
const officeOpenFolders: readonly [folder: string, extension: string][] = [
  ['word/', 'docx'],
  ['xl/', 'xlsx'],
  ['ppt/', 'pptx'],
];

const byMediaType: Readonly<Record<string, DocumentKind>> = {
  'text/html': pageKind,
  'application/xhtml+xml': pageKind,
  'image/svg+xml': { printed: 'image', mediaType: 'image/svg+xml' },
  'text/markdown': { printed: 'markdown' },
  'text/x-markdown': { printed: 'markdown' },
  'text/csv': { printed: 'csv' },
  'application/csv': { printed: 'csv' },
};

/** Images that a browser shows, by their first bytes. */
const pictureSignatures: readonly [start: RegExp, mediaType: string][] = [
  [/^\x89PNG\r\n/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^GIF8[79]a/, 'image/gif'],
  [/^RIFF[^]{4}WEBP/, 'image/webp'],
  [/^[^]{4}ftypavi[fs]/, 'image/avif'],
];

/** `fileName` may be empty. */
export function detectDocumentKind(bytes: Uint8Array, mediaType: string, fileName: string): DocumentKind {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 1_024));
  if (start.includes('%PDF-')) return { printed: 'pdf' };
  if (start.toString('latin1', 0, 5) === '{\\rtf') return toOfficeKind('rtf');
  if (start.toString('latin1', 0, 4) === 'PK\u0003\u0004') return detectArchiveKind(bytes);
  const picture = pictureSignatures.find(([first]) => first.test(start.toString('latin1', 0, 16)))?.[1];
  if (picture !== undefined) return { printed: 'image', mediaType: picture };
  return detectTextKind(start, mediaType, fileName);
}

/** Text has no signature: the server's media type decides, and for plain text also the file name. */
function detectTextKind(start: Buffer, mediaType: string, fileName: string): DocumentKind {
  const known = byMediaType[mediaType];
  if (mediaType.startsWith('image/')) return known ?? { printed: 'image', mediaType };
  if (start.includes(0)) return unknownKind;
  if (mediaType === 'application/octet-stream') return detectByBeginning(start.toString('utf8'));
  if (mediaType !== 'text/plain') return known ?? unknownKind;
  const name = fileName.toLowerCase();
  if (/\.(?:md|markdown)$/.test(name)) return { printed: 'markdown' };
  return name.endsWith('.csv') ? { printed: 'csv' } : toOfficeKind('txt');
}

/** For text without a media type. */
function detectByBeginning(text: string): DocumentKind {
  const first = text.replace(/^\ufeff?\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^]*?-->\s*)*/, '').slice(0, 40);
  if (/^<!doctype\s+html|^<html[\s>]/i.test(first)) return pageKind;
  if (/^<svg[\s>]|^<!doctype\s+svg/i.test(first)) return { printed: 'image', mediaType: 'image/svg+xml' };
  return unknownKind;
}

function detectArchiveKind(bytes: Uint8Array): DocumentKind {
  const archive = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // OpenDocument 1.3 part 2, 3.3 requires this entry to be first and uncompressed, for exactly this purpose.
  const [, declared = ''] = /^mimetype(application\/[a-z.-]+?)(?:PK|$)/.exec(archive.toString('latin1', 30, 130)) ?? [];
  const named = openDocumentExtensions[declared];
  if (named !== undefined) return toOfficeKind(named);
  const names = listEntryNames(archive);
  const found = names.includes('[Content_Types].xml')
    ? officeOpenFolders.find(([folder]) => names.some((name) => name.startsWith(folder)))
    : undefined;
  return found === undefined ? unknownKind : toOfficeKind(found[1]);
}

const maxEntries = 10_000;
const centralEntry = 0x02014b50;

/** Reads the names in the directory at the end of a ZIP archive. Unpacks nothing. */
function listEntryNames(archive: Buffer): string[] {
  const end = archive.lastIndexOf('PK\u0005\u0006');
  if (end < 0 || end + 20 > archive.length) return [];
  const names: string[] = [];
  let at = archive.readUInt32LE(end + 16);
  while (names.length < maxEntries && at + 46 <= archive.length && archive.readUInt32LE(at) === centralEntry) {
    const length = archive.readUInt16LE(at + 28);
    names.push(archive.toString('latin1', at + 46, at + 46 + length));
    at += 46 + length + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  return names;
}

const pageStyle = `
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

export function renderMarkdownPage(markdown: string): string {
  return wrapPage(marked.parse(markdown, { async: false, gfm: true }));
}

/** CSV becomes a page: LibreOffice would guess its encoding and read some cells as formulas. */
export function renderTablePage(csv: string): string {
  const [head = [], ...rows] = parseCsv(csv);
  const row = (cells: readonly string[], tag: 'th' | 'td'): string =>
    `<tr>${cells.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join('')}</tr>`;
  return wrapPage(
    `<table><thead>${row(head, 'th')}</thead><tbody>${rows.map((cells) => row(cells, 'td')).join('')}</tbody></table>`,
  );
}

/** One image, as large as the paper allows. As an image, an SVG runs and loads nothing. */
export function renderImagePage(bytes: Uint8Array, mediaType: string): string {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  return wrapPage(`<img alt="" src="data:${mediaType};base64,${data}">`);
}

function wrapPage(body: string): string {
  return `<!doctype html><html><head><meta charset="utf-8"><style>${pageStyle}</style></head><body>${body}</body></html>`;
}

/** Parses CSV (RFC 4180). The separator is the most frequent of comma, semicolon and tab in the first line. */
function parseCsv(csv: string): string[][] {
  const text = csv.replace(/^\ufeff/, '').replace(/[\r\n]+$/, '');
  const firstLine = text.slice(0, 10_000).split('\n', 1)[0] ?? '';
  const [separator = ','] = [',', ';', '\t'].sort((a, b) => firstLine.split(b).length - firstLine.split(a).length);
  const cell = new RegExp(`(?:"((?:[^"]|"")*)"[^${separator}\\n]*|([^${separator}\\n]*))(${separator}|\\n|$)`, 'gy');
  const rows: string[][] = [[]];
  for (const [, quoted, bare = '', end] of text.matchAll(cell)) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? bare.replace(/\r$/, ''));
    if (end === '') break;
    if (end === '\n') rows.push([]);
  }
  return rows;
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
