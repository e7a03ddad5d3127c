// Reads manifests (JSON, TOML) of unknown origin: anything malformed is simply not there.
import { parse } from 'smol-toml';

/** Parsed JSON, comments not allowed; undefined when absent or malformed. */
export function parseJson(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text.replace(/^\ufeff/, '')) as unknown;
  } catch {
    return undefined;
  }
}

/** Parsed TOML; undefined when absent or malformed. */
export function parseToml(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return parse(text.replace(/^\ufeff/, ''));
  } catch {
    return undefined;
  }
}

/** A nested own field; undefined when any step of the way is missing. */
export function readField(value: unknown, ...names: readonly string[]): unknown {
  let current = value;
  for (const name of names) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, name)) return undefined;
    current = (current as Record<string, unknown>)[name];
  }
  return current;
}

/** A nested field that is text. */
export function readText(value: unknown, ...names: readonly string[]): string | undefined {
  const found = readField(value, ...names);
  return typeof found === 'string' ? found : undefined;
}

/** Names of the fields of a nested object. */
export function readKeys(value: unknown, ...names: readonly string[]): string[] {
  const found = readField(value, ...names);
  return typeof found === 'object' && found !== null && !Array.isArray(found) ? Object.keys(found) : [];
}

/** Texts in a nested list. */
export function readTexts(value: unknown, ...names: readonly string[]): string[] {
  const found = readField(value, ...names);
  return Array.isArray(found) ? found.filter((each): each is string => typeof each === 'string') : [];
}
