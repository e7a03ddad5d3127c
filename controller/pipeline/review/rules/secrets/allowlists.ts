// The allowlists of a repository's .gitleaks.toml, and nothing else of it, for gitleaks to apply to what it found.
import { stringify } from 'smol-toml';
import { field, parseToml, text, texts } from '../../../manifest.ts';

export const configFile = '.gitleaks.toml';
export const maximumConfigBytes = 64 * 1024;

const maximumLists = 50;
const maximumPatterns = 200;
const maximumPatternLength = 1_000;
const targets = ['secret', 'match', 'line'];

type Allowlist = Readonly<Record<string, string | string[]>>;

/**
 * A configuration with the rules of gitleaks itself and the allowlists of the repository; undefined when it has none.
 * The patterns are RE2, which takes linear time; their number and length are bounded. `found` are the rules with
 * findings: gitleaks refuses lists for rules that it does not know.
 */
export function configWithAllowlists(file: string, found: ReadonlySet<string>): string | undefined {
  const parsed = parseToml(file);
  const lists = [field(parsed, 'allowlist'), ...several(field(parsed, 'allowlists'))]
    .slice(0, maximumLists)
    .map((list) => readList(list, found))
    .filter((list) => list !== undefined);
  return lists.length === 0 ? undefined : stringify({ extend: { useDefault: true }, allowlists: lists });
}

function several(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function readList(list: unknown, found: ReadonlySet<string>): Allowlist | undefined {
  const named = Object.fromEntries(
    ['paths', 'regexes', 'stopwords']
      .map((name) => [name, patterns(list, name)] as const)
      .filter(([, each]) => each.length > 0),
  );
  const asked = texts(list, 'targetRules');
  const targetRules = asked.filter((rule) => found.has(rule));
  if (Object.keys(named).length === 0 || (asked.length > 0 && targetRules.length === 0)) return undefined;
  return { ...named, ...(targetRules.length === 0 ? {} : { targetRules }), ...readModes(list) };
}

/** What the patterns are compared with, and whether all kinds of them have to fit. */
function readModes(list: unknown): Allowlist {
  const target = text(list, 'regexTarget')?.toLowerCase() ?? '';
  return {
    ...(targets.includes(target) ? { regexTarget: target } : {}),
    ...(text(list, 'condition')?.toUpperCase() === 'AND' ? { condition: 'AND' } : {}),
  };
}

function patterns(list: unknown, name: string): string[] {
  return texts(list, name)
    .filter((each) => each !== '' && each.length <= maximumPatternLength)
    .slice(0, maximumPatterns);
}
