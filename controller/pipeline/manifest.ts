// Reads manifests (JSON, TOML, YAML) from untrusted repositories. Malformed content is treated as missing.
import { parse } from 'smol-toml';
import { parse as parseYamlText } from 'yaml';

/** Parses JSON without comments; undefined if absent or malformed. */
export function parseJson(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text.replace(/^\ufeff/, '')) as unknown;
  } catch {
    return undefined;
  }
}

/** Parses TOML; undefined if absent or malformed. */
export function parseToml(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return parse(text.replace(/^\ufeff/, ''));
  } catch {
    return undefined;
  }
}

/** Parses YAML without aliases; undefined if absent or malformed. */
export function parseYaml(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return parseYamlText(text, { maxAliasCount: 0 }) as unknown;
  } catch {
    return undefined;
  }
}

/** Reads a nested own field; undefined if any part of the path is missing. */
export function readField(value: unknown, ...names: readonly string[]): unknown {
  let current = value;
  for (const name of names) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, name)) return undefined;
    current = (current as Record<string, unknown>)[name];
  }
  return current;
}

/** Reads a nested text field. */
export function readText(value: unknown, ...names: readonly string[]): string | undefined {
  const found = readField(value, ...names);
  return typeof found === 'string' ? found : undefined;
}

/** Lists the field names of a nested object. */
export function readKeys(value: unknown, ...names: readonly string[]): string[] {
  const found = readField(value, ...names);
  return typeof found === 'object' && found !== null && !Array.isArray(found) ? Object.keys(found) : [];
}

/** Lists the texts in a nested list. */
export function readTexts(value: unknown, ...names: readonly string[]): string[] {
  const found = readField(value, ...names);
  return Array.isArray(found) ? found.filter((each): each is string => typeof each === 'string') : [];
}
