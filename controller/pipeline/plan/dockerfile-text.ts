// Writes the parts that all generated Dockerfiles share.
import type { PlanInput } from './recipe.ts';

/** Says in the Dockerfile what a step is for and which file led to it; a failed build is explained to its author by this. */
export function step(file: string, what: string, ...lines: readonly string[]): string[] {
  return [`# step: ${singleLine(file)} | ${singleLine(what)}`, ...lines];
}

/** Build arguments of the author, declared: the values come by buildctl and stand in no file. */
export function declaredArguments(input: PlanInput, defaults: Readonly<Record<string, string>> = {}): string[] {
  const names = new Set([...input.build.args, ...input.build.env].map((each) => each.name));
  const given = [...names].filter((name) => !(name in defaults)).map((name) => `ARG ${name}`);
  return [...Object.entries(defaults).map(([name, value]) => `ARG ${name}=${value}`), ...given];
}

/** CMD that a shell starts, so that $PORT is read when the app starts, and that the app then replaces. */
export function shellCommand(command: string): string {
  return `CMD ${JSON.stringify(['sh', '-c', command])}`;
}

/** Text as one word of a shell command. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Instruction with a JSON list, which takes names with spaces as they are. */
export function copy(sources: readonly string[], target: string, ...flags: readonly string[]): string {
  return ['COPY', ...flags, JSON.stringify([...sources.map(literal), target])].join(' ');
}

/** A path that COPY takes as itself and not as a pattern. */
function literal(path: string): string {
  return path.replace(/[[*?\\]/g, (sign) => (sign === '[' ? '[[]' : `\\${sign}`)).replaceAll('$', String.raw`\$`);
}

/** The text of a Dockerfile: its reason as a comment, then the lines. */
export function dockerfileText(reason: string, lines: readonly string[]): string {
  return [`# Planned by Moorage. ${singleLine(reason)}`, ...lines, ''].join('\n');
}

function singleLine(text: string): string {
  return text.replace(/\s+/g, ' ');
}
