// Warnings about a call that was answered all the same: query parameters that no field reads, and the header that says
// so where there is no envelope.
import { z } from 'zod';
import { findMeantField } from '../../../lib/problem.ts';

const stated = z.array(z.string());

/** A link that collects parameters on its way is not answered by a list of them all. */
const maxWarnings = 10;
const maxNameCharacters = 60;
/** Proxies refuse large headers. */
const maxHeaderCharacters = 3_000;

/** One for each parameter that is not known, with the field that may have been meant. */
export function unknownParameters(names: readonly string[], known: readonly string[]): string[] {
  const named = names.slice(0, maxWarnings).map((name) => {
    const meant = findMeantField(name, known);
    const shown = JSON.stringify(name.slice(0, maxNameCharacters).toWellFormed());
    return `Query parameter ${shown} is not known and was ignored.${meant === undefined ? '' : ` Did you mean "${meant}"?`}`;
  });
  const more = names.length - named.length;
  return more === 0 ? named : [...named, `${more} more query parameters are not known and were ignored.`];
}

/** What a tool itself says that it left out. */
export function warningsIn(result: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  return stated.safeParse(result?.['warnings']).data ?? [];
}

/** A JSON list of strings, in ASCII. */
export function warningsHeader(warnings: readonly string[]): Record<string, string> {
  if (warnings.length === 0) return {};
  const kept: string[] = [];
  for (const warning of warnings) {
    if (ascii([...kept, warning]).length > maxHeaderCharacters) break;
    kept.push(warning);
  }
  const left = warnings.length - kept.length;
  return { 'x-warnings': ascii(left === 0 ? kept : [...kept, `${left} more; call without raw to read them.`]) };
}

function ascii(texts: readonly string[]): string {
  return JSON.stringify(texts).replaceAll(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
