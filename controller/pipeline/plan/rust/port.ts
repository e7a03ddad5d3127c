// Finds the port that a Rust program listens on whatever $PORT says.
import type { Tree } from '../../tree.ts';
import { exposedPort } from '../common/exposed.ts';

const literals: readonly RegExp[] = [
  /(?:\.bind|TcpListener::bind|SocketAddr::from|\.run|\.parse)[^\n;]{0,60}?(?:"[\w.[\]]{0,40}:|\]\s{0,9},\s{0,9})(\d{4,5})\b/,
  /"(?:0\.0\.0\.0|127\.0\.0\.1|localhost|\[::\]):(\d{4,5})"/,
  /\b(?:default_value(?:_t)?)\s{0,9}=\s{0,9}"?[\w.[\]:]{0,30}?(\d{4,5})\b/,
  /\b\w{0,20}port\w{0,10}\b[^\n]{0,40}?[=(,]\s{0,9}(\d{4,5})(?:u16)?\b/i,
  /\.bind\(\s{0,9}\(\s{0,9}"[\w.]{1,40}"\s{0,9},\s{0,9}(\d{4,5})\s{0,9}\)/,
];
const aside = /(?:^|\/)(?:tests?|benches|examples|target)\//;

/** undefined when there is none, or the environment has a say. Rocket reads ROCKET_PORT. */
export function findRustPort(tree: Tree): number | undefined {
  const files = tree.entries
    .filter((each) => each.kind === 'file' && each.path.endsWith('.rs') && !aside.test(each.path))
    .slice(0, 300)
    .map((each) => (tree.text(each.path, 64 * 1024) ?? '').replace(/^[ \t]*\/\/.*$/gm, ''));
  if (
    files.some((text) =>
      /(?:env::var|env::var_os|dotenv::var|var|env)\(\s{0,9}"PORT"|env\s{0,3}=\s{0,3}"PORT"|#\[launch\]|rocket::build/.test(
        text,
      ),
    )
  )
    return undefined;
  for (const pattern of literals)
    for (const text of files) {
      const port = Number(pattern.exec(text)?.[1]);
      if (port >= 1024 && port <= 65_535 && ![3306, 5432, 6379, 6333, 11_434, 27_017].includes(port)) return port;
    }
  return exposedPort(tree);
}
