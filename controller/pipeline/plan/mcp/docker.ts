// Recognizes the MCP server that an author's Dockerfile starts, and what its start speaks.
import type { Tree } from '../../tree.ts';
import { readDockerStart, type DockerStart } from '../dockerfile/text.ts';
import { type PlanInput, quoteShellWord } from '../recipe.ts';
import { joinVariables, type McpDeclaration, readMcpDeclarations } from './declared.ts';
import { chooseMcpPath, describeOthers, isStartedBy, isWebApp, listMcpPrograms, type McpServer } from './find.ts';
import { findStartedScript } from './node.ts';
import { type McpProgram, type McpTransport, parseTransport, transportVariable } from './transports.ts';

export interface DockerServer {
  readonly server: McpServer;
  /** What the bridge starts: the Dockerfile's own start, or mcp.command of moorage.yaml. */
  readonly start: DockerStart;
}

/** Programs that serve a stdio server over HTTP themselves. */
const gateways = /(?:^|[\s/])(?:supergateway|mcp-proxy|mcpo|mcp-remote)(?:@\S+)?(?=\s|$)/;

/** Recognizes the server; undefined if the Dockerfile starts none, or one behind a gateway of its own. */
export function findDockerServer(tree: Tree, input: PlanInput, text: string): DockerServer | undefined {
  const start = chooseStart(input, text);
  if (start === undefined) return undefined;
  const words = [...start.entrypoint, ...start.arguments];
  const program = findStartedProgram(tree, input, words);
  if (program === 'other' && input.mcp?.transport === undefined) return undefined;
  const known = program === 'other' ? undefined : program;
  const evidence = { words, start, program: known, declarations: readMcpDeclarations(tree) };
  const transport = isOther(tree, input, evidence) ? undefined : decideTransport(input, evidence);
  return transport === undefined ? undefined : { server: toServer(input, evidence, transport), start };
}

/** The start of the Dockerfile, or of moorage.yaml; undefined if there is none that the bridge could take. */
function chooseStart({ mcp, build }: PlanInput, text: string): DockerStart | undefined {
  if (mcp?.transport === 'none') return undefined;
  const start = readDockerStart(text, build.target);
  const command = mcp?.command ?? [];
  if (command.length > 0) return { variables: new Map(), ...start, entrypoint: [...command], arguments: [] };
  const words = start === undefined ? [] : [...start.entrypoint, ...start.arguments];
  return words.length === 0 || words.some((each) => gateways.test(each)) ? undefined : start;
}

/**
 * What it starts need not be at the top: the program with its name, or else the only one. `other` if it starts a file
 * that is no MCP server.
 */
function findStartedProgram(tree: Tree, input: PlanInput, words: readonly string[]): McpProgram | 'other' | undefined {
  const programs = listMcpPrograms(tree, { ...input, build: { ...input.build, strategy: 'auto' } });
  const named = programs.find((each) => isStartedBy(each, words)) ?? findStartedScript(tree, words);
  const [only, ...more] = programs;
  return named ?? (more.length === 0 ? only : undefined);
}

/** Returns whether the image is rather a web app, with the server next to it. */
function isOther(tree: Tree, { mcp }: PlanInput, { program, declarations }: Evidence): boolean {
  if (mcp?.transport !== undefined || declarations.length > 0) return false;
  return program === undefined || isWebApp(tree, program);
}

interface Evidence {
  readonly words: readonly string[];
  readonly start: DockerStart;
  readonly program: McpProgram | undefined;
  readonly declarations: readonly McpDeclaration[];
}

function decideTransport({ mcp }: PlanInput, evidence: Evidence): McpTransport | undefined {
  const asked = mcp?.transport;
  if (asked !== undefined && asked !== 'none') return asked;
  const { program, declarations } = evidence;
  return readSpokenTransport(evidence) ?? program?.speaks.byDefault ?? declarations[0]?.transport;
}

/** A word or variable of the Dockerfile chooses the transport: `CMD ["server", "--transport", "http"]`. */
function readSpokenTransport({ words, start: { variables } }: Evidence): McpTransport | undefined {
  const parts = words.flatMap((each) => each.split(/[\s=]+/)).map((each) => each.replace(/^--?/, ''));
  const values = [...variables].filter(([name]) => transportVariable.test(name)).map(([, value]) => value);
  // The first word is the program.
  return [...parts.slice(1), ...values].map(parseTransport).find((each) => each !== undefined);
}

function toServer(input: PlanInput, evidence: Evidence, transport: McpTransport): McpServer {
  const { words, start, program, declarations } = evidence;
  return {
    ...(program === undefined ? {} : { program }),
    file: program?.file ?? input.build.dockerfile,
    transport,
    command: words.map(quoteShellWord).join(' '),
    path: chooseMcpPath(transport, program),
    listening: {
      isLocal: program?.listening?.isLocal === true && !words.includes('0.0.0.0'),
      port: program?.listening?.port ?? start.port,
    },
    environment: joinVariables(declarations),
    certainty: input.mcp?.transport === undefined ? 'likely' : 'certain',
    because: explain(input.build.dockerfile, transport, evidence),
    ...describeOthers(program, transport),
  };
}

function explain(dockerfile: string, transport: McpTransport, { program, declarations }: Evidence): string {
  const start = `${dockerfile} starts an MCP server over ${transport}`;
  if (program !== undefined) return `${start}: ${program.file} ${program.speaks.because}.`;
  return `${start}, as ${declarations[0]?.file ?? 'moorage.yaml'} says.`;
}
