// The audio format of a recording, by its first bytes: the media type from a server is often wrong.
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';

export const audioFormats = ['mp3', 'wav', 'm4a', 'ogg'] as const;
export type AudioFormat = (typeof audioFormats)[number];

/** Media types as speech servers know them. */
export const audioTypes: Readonly<Record<AudioFormat, string>> = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  m4a: 'audio/mp4',
  ogg: 'audio/ogg',
};

/**
 * By the first bytes, read as Latin-1. The second byte of an MPEG frame gives its layer: III is mp3, none is bare AAC.
 */
const signatures: readonly (readonly [RegExp, AudioFormat])[] = [
  [/^RIFF[^]{4}WAVE/, 'wav'],
  [/^ID3|^\xff[\xe2\xe3\xf2\xf3\xfa\xfb]/, 'mp3'],
  [/^[^]{4}ftyp(?:M4[AB] |mp4[12]|isom|iso[2-9]|dash)/, 'm4a'],
  [/^OggS[^]{22}[^]{1,256}?(?:OpusHead|vorbis|\x7fFLAC|Speex {3})/, 'ogg'],
];

/** What callers most often send instead. */
const others: readonly (readonly [RegExp, string])[] = [
  [/^fLaC/, 'a FLAC file'],
  [/^OggS/, 'an Ogg file without speech in it'],
  [/^[^]E\xdf\xa3/, 'a WebM or Matroska file'],
  [/^\xff[\xf0\xf1\xf8\xf9]/, 'bare AAC'],
  [/^FORM[^]{4}AIF[FC]/, 'an AIFF file'],
  [/^#!AMR/, 'an AMR file'],
  [/^\x30\x26\xb2\x75/, 'a Windows Media file'],
  [/^[^]{4}ftyp/, 'a video or picture'],
  [/^%PDF-/, 'a PDF'],
  [/^\s*<(?:!doctype|html|head|\?xml)/i, 'a web page; send the URL of the file itself'],
];

/** @throws Problem (unprocessable) that says what it is instead */
export function audioFormatOf(bytes: Uint8Array, mediaType: string): AudioFormat {
  const start = Buffer.from(bytes.subarray(0, 300)).toString('latin1');
  const format = signatures.find(([signature]) => signature.test(start))?.[1];
  if (format !== undefined) return format;
  if (bytes.length === 0) throw new Problem(unprocessable, 'The file is empty.');
  const other =
    others.find(([signature]) => signature.test(start))?.[1] ?? `of an unknown format, sent as ${mediaType}`;
  throw new Problem(unprocessable, `Supported formats are mp3, wav, m4a and ogg, but the file is ${other}.`, {
    members: { media_type: mediaType },
  });
}
