// Finds the port that a program listens on regardless of $PORT, in its start file or start command.

/**
 * The port depends on the environment: process.env.PORT, os.environ.get("APP_PORT"), `const { PORT } = process.env`.
 */
const asks = /(?:env|environ|getenv)\W{1,6}(?:get\W{1,3})?(?:\w{1,30}_)?PORT\b|\bPORT\b[^\n]{0,80}process\.env/i;
/** A number passed to a listen call. */
const listened: readonly RegExp[] = [
  /\.listen\(\s{0,9}\{?[^)\n]{0,40}?\b(\d{4,5})\b/g,
  /\b(?:run|launch|serve|run_app|create_server|run_simple|start_server|Server)\([^()]{0,300}?\bport\s{0,9}[:=]\s{0,9}(\d{4,5})\b/g,
  /\(\s{0,9}["'][\d.:]{0,40}["']\s{0,9},\s{0,9}(\d{4,5})\s{0,9}\)/g,
];
/** A number named as a port: of this program, or of another one that it connects to. */
const named: readonly RegExp[] = [
  /\b(?:server_)?port["']?\s{0,9}[:=]\s{0,9}(\d{4,5})\b/gi,
  /--port["'][^\n]{0,80}\bdefault\s?[:=]\s?(\d{4,5})\b/g,
];
const inCommand = /(?:--(?:server[.-])?port[ =]|\s-[lp] ?|[\d\]]:)(\d{4,5})\b/;
/** Ports of databases and mail servers, which start files often mention. */
export const portsElsewhere: ReadonlySet<number> = new Set([
  1433, 1521, 2525, 3306, 5432, 5672, 6333, 6379, 8123, 9092, 9200, 11_211, 11_434, 19_530, 27_017,
]);
/** Database client programs. */
const clients = /\b(?:redis|psql|mysql|mongo|clickhouse)/;

/** Finds a literal port in a start file; undefined if there is none, or it depends on the environment. */
export function findPortInFile(text: string | undefined): number | undefined {
  const code = (text ?? '').replace(/^[ \t]*(?:#|\/\/).*$/gm, '');
  if (asks.test(code)) return undefined;
  return findNumbers(code, listened).find(isUsablePort) ?? findNamedPort(code);
}

/**
 * `const PORT = 8123` counts if the program then listens on that name, even if the port is typical for another service.
 */
function findNamedPort(code: string): number | undefined {
  const isListened = /\.listen\(\s{0,9}port\b|\bport\s{0,3}=\s{0,3}port\b/i.test(code);
  return findNumbers(code, named).find((port) => isUsablePort(port) && (isListened || !portsElsewhere.has(port)));
}

function findNumbers(code: string, patterns: readonly RegExp[]): number[] {
  return patterns.flatMap((each) => [...code.matchAll(each)].map((match) => Number(match[1])));
}

/** Finds a literal port in a start command; undefined if there is none, or the command uses $PORT. */
export function findPortInCommand(command: string): number | undefined {
  if (/\bPORT\b/.test(command)) return undefined;
  const port = Number(inCommand.exec(command)?.[1]);
  return isUsablePort(port) && !(portsElsewhere.has(port) && clients.test(command)) ? port : undefined;
}

export function isUsablePort(port: number): boolean {
  return port >= 1024 && port <= 65_535;
}
