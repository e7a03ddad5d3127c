// Packs the settings that a review reports, so that those of many components fit into a termination message, and limits what
// a repository can set to what fits.
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import { z } from 'zod';
import {
  manifestFile,
  maximumManifestBytes,
  reportedSettings,
  type ReportedSettings,
} from '../../crds/app-manifest.ts';
import type { Finding } from '../../crds/hosted-app.ts';

/** Maximum length of packed settings. The plan and at least one finding have room next to them in a message. */
export const maximumPackedBytes = 3_000;

/** Maximum length of settings in the status, with the record of the files that they come from. */
const maximumReportedLength = 16_000;

/** Packs settings into a text: their JSON, compressed by Brotli, in base64url. */
export function packSettings(settings: ReportedSettings): string {
  const json = Buffer.from(JSON.stringify(settings));
  const params = {
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    [constants.BROTLI_PARAM_SIZE_HINT]: json.length,
  };
  return brotliCompressSync(json, { params }).toString('base64url');
}

/**
 * Settings as a review reports them: plain, as they were before there were components, or packed. A report comes from the
 * pod of a stranger, so what it unpacks to is limited before it is parsed.
 */
export const transportedSettings = z
  .union([
    reportedSettings,
    z
      .string()
      .max(maximumReportedLength)
      .regex(/^[A-Za-z0-9_-]+$/)
      .transform((text, context): unknown => {
        try {
          return JSON.parse(unpack(text));
        } catch {
          context.addIssue('must be packed JSON');
          return z.NEVER;
        }
      })
      .pipe(reportedSettings),
  ])
  // Defaults that the schema fills in can make settings longer than their report.
  .refine((settings) => JSON.stringify(settings).length <= maximumReportedLength, 'must fit into the status');

function unpack(text: string): string {
  const options = { maxOutputLength: maximumReportedLength };
  return brotliDecompressSync(Buffer.from(text, 'base64url'), options).toString('utf8');
}

/** Whether the settings fit into the report of a review. */
export function isReportable(settings: ReportedSettings): boolean {
  return describeExcess(settings) === undefined;
}

/** Describes how much too large the settings are for the report of a review; undefined if they fit. */
function describeExcess(settings: ReportedSettings): string | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(settings));
  if (bytes > maximumManifestBytes)
    return `take ${bytes} bytes as JSON, and the operator reads at most ${maximumManifestBytes}`;
  // Packed text is rarely longer than the JSON, so the slow part is left out for nearly all apps.
  if (bytes <= maximumPackedBytes) return undefined;
  const packed = packSettings(settings).length;
  return packed > maximumPackedBytes
    ? `take ${packed} bytes when they are compressed, and the report of a review has room for ${maximumPackedBytes}`
    : undefined;
}

/** Rejects settings that do not fit into the report of a review, and names the values that take the most room. */
export function findExcess(settings: ReportedSettings): Finding | undefined {
  const excess = describeExcess(settings);
  if (excess === undefined) return undefined;
  const { platform } = settings;
  const longest = listValues(settings)
    .toSorted((one, other) => other.bytes - one.bytes)
    .slice(0, 3)
    .map(({ field, bytes }) => `${field} (${bytes} bytes)`);
  const source = platform === undefined ? '' : `, with those from ${platform.file},`;
  return {
    rule: 'settings/too-large',
    severity: 'error',
    file: platform?.file.split(', ')[0] ?? manifestFile,
    message: `The settings of the app${source} ${excess}. The longest are ${longest.join(', ')}.`,
    fix: 'Read long values from a file in the repository, give variables their default in the code, or set those that several components share once, in run.env.',
  };
}

interface SizedValue {
  readonly field: string;
  readonly bytes: number;
}

/** Lists the texts of the settings by field. Items of lists go by their name: components[api].env[TOKEN]. */
function listValues(value: unknown, field = ''): SizedValue[] {
  if (typeof value === 'string') return [{ field, bytes: Buffer.byteLength(value) }];
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value))
    return value.flatMap((item: unknown, index) => {
      const path = `${field}[${readName(item) ?? index}]`;
      return isVariable(item) ? [{ field: path, bytes: Buffer.byteLength(item.value) }] : listValues(item, path);
    });
  return Object.entries(value).flatMap(([name, inner]) => listValues(inner, field === '' ? name : `${field}.${name}`));
}

function readName(item: unknown): string | undefined {
  return typeof item === 'object' && item !== null && 'name' in item && typeof item.name === 'string'
    ? item.name
    : undefined;
}

function isVariable(item: unknown): item is { readonly value: string } {
  return typeof item === 'object' && item !== null && 'value' in item && typeof item.value === 'string';
}
