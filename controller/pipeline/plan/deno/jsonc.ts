// Reads JSON with comments and trailing commas, as configurations of Deno are written.
import { parseJson } from '../../manifest.ts';

/** undefined when absent or malformed. */
export function parseJsonc(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  // Strings are matched first, so that what looks like a comment in them stays.
  const plain = text.replace(
    /("(?:[^"\\\n]|\\.){0,5000}")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g,
    (_, quoted: string | undefined) => quoted ?? '',
  );
  return parseJson(
    plain.replace(/("(?:[^"\\\n]|\\.){0,5000}")|,(?=\s{0,200}[}\]])/g, (_, quoted: string | undefined) => quoted ?? ''),
  );
}
