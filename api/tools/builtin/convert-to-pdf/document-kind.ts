// The kind of a file to convert to PDF: by its bytes where they are distinctive, otherwise by the media type that its
// server reports, or by what its text begins with where nobody reports one.

export type DocumentKind =
  | { readonly printed: 'page' | 'markdown' | 'csv' | 'pdf' | 'unknown' }
  | { readonly printed: 'image'; readonly mediaType: string }
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
  'image/svg+xml': { printed: 'image', mediaType: 'image/svg+xml' },
  'text/markdown': { printed: 'markdown' },
  'text/x-markdown': { printed: 'markdown' },
  'text/csv': { printed: 'csv' },
  'application/csv': { printed: 'csv' },
};

/** Pictures that a browser shows, by their first bytes. */
const pictures: readonly [start: RegExp, mediaType: string][] = [
  [/^\x89PNG\r\n/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^GIF8[79]a/, 'image/gif'],
  [/^RIFF[^]{4}WEBP/, 'image/webp'],
  [/^[^]{4}ftypavi[fs]/, 'image/avif'],
];

/** `fileName` may be empty. */
export function documentKind(bytes: Uint8Array, mediaType: string, fileName: string): DocumentKind {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 1_024));
  if (start.includes('%PDF-')) return { printed: 'pdf' };
  if (start.toString('latin1', 0, 5) === '{\\rtf') return office('rtf');
  if (start.toString('latin1', 0, 4) === 'PK\u0003\u0004') return archiveKind(bytes);
  const picture = pictures.find(([first]) => first.test(start.toString('latin1', 0, 16)))?.[1];
  if (picture !== undefined) return { printed: 'image', mediaType: picture };
  return byText(start, mediaType, fileName);
}

/** Text has no mark: its server says what it is, and for plain text the name may say more. */
function byText(start: Buffer, mediaType: string, fileName: string): DocumentKind {
  const known = byMediaType[mediaType];
  if (mediaType.startsWith('image/')) return known ?? { printed: 'image', mediaType };
  if (start.includes(0)) return unknown;
  if (mediaType === 'application/octet-stream') return byBeginning(start.toString('utf8'));
  if (mediaType !== 'text/plain') return known ?? unknown;
  const name = fileName.toLowerCase();
  if (/\.(?:md|markdown)$/.test(name)) return { printed: 'markdown' };
  return name.endsWith('.csv') ? { printed: 'csv' } : office('txt');
}

/** Of text that nobody has named. */
function byBeginning(text: string): DocumentKind {
  const first = text.replace(/^\ufeff?\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^]*?-->\s*)*/, '').slice(0, 40);
  if (/^<!doctype\s+html|^<html[\s>]/i.test(first)) return page;
  if (/^<svg[\s>]|^<!doctype\s+svg/i.test(first)) return { printed: 'image', mediaType: 'image/svg+xml' };
  return unknown;
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
