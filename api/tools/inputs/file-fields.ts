// The input fields for a file: its URL, its bytes, or the file of an earlier call. Every tool that reads a file has all
// three, and takes exactly one.
import { z } from 'zod';
import { urlField } from '../fetch/url-field.ts';
import { dataBytes } from './data-bytes.ts';
import { readableRule } from './field-rules.ts';

/** Bytes of a file that fit into the largest body that is read, and the characters of base64 that these are. */
export const maxDataMegabytes = 3;
const maxDataCharacters = Math.ceil((maxDataMegabytes * 1_048_576) / 3) * 4;

export const fileFieldNames = ['url', 'data', 'artifact'] as const;

/** An id, alone or at the end of a URL or path; whether it is of this installation is known where the file is read. */
const artifactPattern = /(?:^|t\/artifacts\/)[\w-]{22}(?:[?#]\S*)?\s*$/;

/** What a caller sends of a file. */
export interface GivenFile {
  readonly url?: string | undefined;
  readonly data?: string | undefined;
  readonly artifact?: string | undefined;
}

interface FileFields {
  url: z.ZodOptional<z.ZodString>;
  data: z.ZodOptional<z.ZodString>;
  artifact: z.ZodOptional<z.ZodString>;
}

/** The three fields. `what` names the file, like `the PDF`; `others` are further fields that may be sent instead. */
export function fileFields(what: string, others: readonly string[] = []): FileFields {
  const instead = [...others, 'data', 'artifact'];
  return {
    url: urlField(`URL of ${what}; alternative to ${listed(instead)}`).optional(),
    data: z
      .string()
      .min(1)
      .max(maxDataCharacters)
      .superRefine(readableRule(dataBytes))
      .optional()
      .describe(`Bytes of ${what} in base64, at most ${maxDataMegabytes} MB, or a data: URL; alternative to url.`),
    artifact: z
      .string()
      .min(1)
      .max(500)
      .regex(artifactPattern, 'is neither the id nor the URL of a file that this installation created')
      .optional()
      .describe('File of an earlier call: artifact.url, or the id at its end; alternative to url.'),
  };
}

/** Other names under which callers send the bytes or the artifact. */
export const fileAliases = {
  base64: 'data',
  artifact_url: 'artifact',
  artifact_id: 'artifact',
} as const;

function listed(names: readonly string[]): string {
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1) ?? ''}`;
}
