// The kind of a file to convert to PDF: by its bytes where they are distinctive, otherwise by the media type that its
// server reports.

export type DocumentKind =
  | { readonly printed: 'page' | 'markdown' | 'csv' | 'pdf' | 'unknown' }
  | { readonly printed: 'office'; readonly extension: string };

const page: DocumentKind = { printed: 'page' };
const unknown: DocumentKind = { printed: 'unknown' };
const office = (extension: string): DocumentKind => ({ printed: 'office', extension });

/** Kinds of OpenDocument by the media type that is the first entry of the archive. */
const openDocument: Readonly<Record<string, string>> = {
  'application/vnd.oasis.opendocument.text': 'odt',
  'application/vnd.oasis.opendocument.spreadsheet': 'ods',
  'application/vnd.oasis.opendocument.presentation': 'odp',
};
/** Kinds of Office Open XML by the folder that only they have. */
const officeOpen: readonly [folder: string, extension: string][] = [
  ['word/', 'docx'],
  ['xl/', 'xlsx'],
  ['ppt/', 'pptx'],
];

const byMediaType: Readonly<Record<string, DocumentKind>> = {
  'text/html': page,
  'application/xhtml+xml': page,
  'image/svg+xml': page,
  'text/markdown': { printed: 'markdown' },
  'text/x-markdown': { printed: 'markdown' },
  'text/csv': { printed: 'csv' },
  'application/csv': { printed: 'csv' },
};

export function documentKind(bytes: Uint8Array, mediaType: string, url: string): DocumentKind {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 1_024));
  if (start.includes('%PDF-')) return { printed: 'pdf' };
  if (start.toString('latin1', 0, 5) === '{\\rtf') return office('rtf');
  if (start.toString('latin1', 0, 4) === 'PK\u0003\u0004') return archiveKind(bytes);
  return byText(start, mediaType, url);
}

/** Text has no mark: its server says what it is, and for plain text the name may say more. */
function byText(start: Buffer, mediaType: string, url: string): DocumentKind {
  if (mediaType.startsWith('image/') && mediaType !== 'image/svg+xml') return page;
  if (start.includes(0)) return unknown;
  if (mediaType !== 'text/plain') return byMediaType[mediaType] ?? unknown;
  const name = new URL(url).pathname.toLowerCase();
  if (/\.(?:md|markdown)$/.test(name)) return { printed: 'markdown' };
  return name.endsWith('.csv') ? { printed: 'csv' } : office('txt');
}

function archiveKind(bytes: Uint8Array): DocumentKind {
  const archive = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // Stored without compression and first, as OpenDocument 1.3 part 2, 3.3, asks, for just this purpose.
  const [, declared = ''] = /^mimetype(application\/[a-z.-]+?)(?:PK|$)/.exec(archive.toString('latin1', 30, 130)) ?? [];
  const named = openDocument[declared];
  if (named !== undefined) return office(named);
  const names = entryNames(archive);
  const found = names.includes('[Content_Types].xml')
    ? officeOpen.find(([folder]) => names.some((name) => name.startsWith(folder)))
    : undefined;
  return found === undefined ? unknown : office(found[1]);
}

const maxEntries = 10_000;
const centralEntry = 0x02014b50;

/** Names in the directory at the end of a ZIP archive; nothing is unpacked. */
function entryNames(archive: Buffer): string[] {
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
