// Adds the bridge to the image of an MCP server: a program that serves streamable HTTP at /mcp in front of a server that speaks
// stdio or SSE, or that only its own container reaches.
import type { Plan } from '../../../../crds/hosted-app.ts';
import { listCallerVariables } from '../../../../crds/status.ts';
import { keepHead } from '../../text.ts';
import type { DockerStart } from '../dockerfile/text.ts';
import { defaultPort, type PlanInput, type Recipe, renderStep } from '../recipe.ts';
import type { McpServer } from './find.ts';

/** Build context with the bridge, which the build stage passes to BuildKit. A stage of that name would replace it. */
export const bridgeContext = 'moorage-bridge';
/** The program in that context. */
const bridgeFile = 'mcp-bridge';
const bridgeProgram = `/opt/moorage/${bridgeFile}`;
/** Servers of the SDKs for Python listen here, and most examples of all others. */
const usualPort = 8000;

/** Returns whether the server needs the bridge: it does not answer streamable HTTP on the port that the gateway reaches. */
export function shouldBridge(
  { transport, listening }: McpServer,
  { port, hasMoved }: Pick<PlanInput, 'port' | 'hasMoved'>,
): boolean {
  // With run.port set, it listens there itself.
  return transport !== 'streamable-http' || (listening.isLocal && (port === undefined || hasMoved === true));
}

/** Adds the server to a plan of its language, and the bridge if it needs one. */
export function addMcpServer(recipe: Recipe, server: McpServer, input: PlanInput): Recipe {
  const isBridged = shouldBridge(server, input);
  const plan = describePlan(recipe.plan, server, isBridged, input);
  const { dockerfile, hasFixedPort: _, ...rest } = recipe;
  if (!isBridged || dockerfile === undefined) return { ...recipe, plan };
  const port = plan.port ?? defaultPort;
  const lines = [
    ...renderBridge(),
    // The language's own stage sets PORT and EXPOSE for what it starts, which now is the bridge.
    `ENV PORT=${port}`,
    `ENTRYPOINT ${JSON.stringify([bridgeProgram, ...listOptions(server, port), '--'])}`,
  ];
  const at = dockerfile.lastIndexOf('\nCMD ');
  const [head, tail] = at < 0 ? [dockerfile, ''] : [dockerfile.slice(0, at), dockerfile.slice(at)];
  // The bridge listens on $PORT, whatever the code says.
  return { ...rest, plan, dockerfile: `${head}\n${lines.join('\n')}${tail}`, usesBridge: true };
}

/** Adds the bridge to an author's Dockerfile. Its last stage keeps everything but what it starts. */
export function extendDockerfile(text: string, server: McpServer, start: DockerStart, input: PlanInput): Recipe {
  const isBridged = shouldBridge(server, input);
  const base: Plan = { strategy: 'dockerfile', reason: server.because, certainty: server.certainty };
  const plan = describePlan(base, server, isBridged, input);
  if (!isBridged) return { plan: omitPort(plan, input), findings: [] };
  const port = plan.port ?? defaultPort;
  const lines = [
    ...(input.build.target === undefined ? [] : [`FROM ${input.build.target}`]),
    ...renderBridge(),
    `ENV PORT=${port}`,
    `EXPOSE ${port}`,
    `ENTRYPOINT ${JSON.stringify([bridgeProgram, ...listOptions(server, port), '--', ...start.entrypoint])}`,
    `CMD ${JSON.stringify(start.arguments)}`,
  ];
  return {
    plan,
    dockerfile: `${text.trimEnd()}\n\n${lines.join('\n')}\n`,
    extendsAuthored: true,
    usesBridge: true,
    findings: [],
  };
}

/** An author's image says itself where it listens. */
function omitPort(plan: Plan, { port }: PlanInput): Plan {
  const { port: _, ...rest } = plan;
  return port === undefined ? rest : { ...rest, port };
}

function renderBridge(): string[] {
  return renderStep(
    'plan',
    'adding the bridge to streamable HTTP',
    `COPY --link --chmod=0755 --from=${bridgeContext} ${bridgeFile} ${bridgeProgram}`,
  );
}

function listOptions({ transport, path, listening, environment }: McpServer, port: number): string[] {
  if (transport === 'stdio') {
    const names = listCallerVariables({
      file: '',
      transport,
      command: '',
      path,
      bridged: true,
      environment: [...environment],
    });
    return ['--transport', 'stdio', ...names.flatMap(({ name }) => ['--session-variable', name])];
  }
  const behind = listening.port ?? (port === usualPort ? usualPort + 1 : usualPort);
  return [
    ...['--transport', transport === 'sse' ? 'sse' : 'http'],
    ...['--upstream-port', String(behind === port ? behind + 1 : behind)],
    ...['--upstream-path', path],
  ];
}

function describePlan(plan: Plan, server: McpServer, isBridged: boolean, input: PlanInput): Plan {
  const { transport, command, path, environment, certainty, otherwise } = server;
  const bridge = isBridged
    ? transport === 'stdio'
      ? 'A bridge serves it at /mcp, with a process for each session.'
      : 'A bridge serves it at /mcp.'
    : `It serves streamable HTTP at ${path}.`;
  const reason =
    plan.strategy === 'dockerfile' ? `${server.because} ${bridge}` : `${server.because} ${bridge} ${plan.reason}`;
  return {
    ...plan,
    reason,
    framework: 'MCP',
    certainty,
    ...(isBridged ? { port: input.port ?? defaultPort } : {}),
    ...(isBridged ? {} : { paths: [path] }),
    ...(otherwise === undefined ? {} : { otherwise }),
    mcp: {
      file: keepHead(server.file, 200),
      transport,
      command: keepHead(command.replace(/^exec /, ''), 290),
      path,
      bridged: isBridged,
      ...(environment.length === 0 ? {} : { environment: [...environment] }),
    },
  };
}
