// Reads YAML of other platforms, with anchors and merge keys; anything malformed is simply not there.
import { parse } from 'yaml';

const maximumBytes = 256 * 1024;

/** Parsed YAML; undefined when absent, too large, malformed, or made of more aliases than a person writes. */
export function parseYaml(text: string | undefined): unknown {
  if (text === undefined || text.length > maximumBytes) return undefined;
  try {
    return parse(text, { merge: true, maxAliasCount: 200, uniqueKeys: false, logLevel: 'silent' }) as unknown;
  } catch {
    return undefined;
  }
}
