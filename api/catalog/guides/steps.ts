// A step of a guide as a line that can be executed: curl for HTTP, name and arguments for MCP.
import type { Call, SourceStep } from './source.ts';

/** A step in both languages, and what it runs. */
export interface Step {
  readonly say: string;
  readonly say_zh: string;
  /** A shell command, or the parameters of an MCP request; the same in every language. */
  readonly command: string;
}

export function stepOf({ say, say_zh, call }: SourceStep, baseUrl: string): Step {
  return { say, say_zh, command: commandOf(call, baseUrl) };
}

/** The line of a record. */
export function lineOf({ say, command }: Step): string {
  return `${say}: ${command}`;
}

/** How the call of an MCP tool begins; its parameters follow as JSON. */
export const mcpCall = (baseUrl: string): string => `MCP tools/call at ${baseUrl}/mcp with `;

function commandOf(call: Call, baseUrl: string): string {
  if ('mcp' in call) return `${mcpCall(baseUrl)}${JSON.stringify({ name: call.mcp, arguments: call.arguments })}`;
  if ('post' in call) {
    // In double quotes, the shell fills the key in.
    const key = call.key === true ? ' -H "Authorization: Bearer $ROUTER_KEY"' : '';
    return `curl ${addressOf({ get: call.post }, baseUrl)}${key} -H 'content-type: application/json' -d ${quoted(JSON.stringify(call.json))}`;
  }
  const save = call.save === undefined ? '' : ` -o ${call.save}`;
  return `curl${save} ${addressOf(call, baseUrl)}`;
}

const variable = /^\$[A-Z][A-Z_]{0,30}$/;

/** Whether a value is filled in by who runs the step. */
export function isVariable(value: unknown): boolean {
  return typeof value === 'string' && variable.test(value);
}

function addressOf({ get, query = {} }: Extract<Call, { get: string }>, baseUrl: string): string {
  if (isVariable(get)) return `"${get}"`;
  const pairs = Object.entries(query).map(
    ([name, value]) => `${name}=${isVariable(value) ? String(value) : encoded(String(value))}`,
  );
  const url = `${baseUrl}${get}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`;
  return Object.values(query).some(isVariable) ? `"${url}"` : quoted(url);
}

/** Nothing that a shell reads in double quotes is left as it is. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll('!', '%21').replaceAll('%20', '+');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
