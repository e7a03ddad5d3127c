// Reads back a Dockerfile that our planner wrote: what it runs at the build, and what it starts or serves.

/** A command of the build, and the folder of the repository that it runs in. */
export interface Step {
  readonly command: string;
  readonly folder: string;
}

export interface Commands {
  readonly start: string;
  readonly build: readonly Step[];
  /** Folder of the served files, seen from the app's; undefined when a program is started. */
  readonly serves?: string | undefined;
}

export function readDockerfile(text: string): Commands {
  const lines = withoutHeredocs(text.replaceAll('\\\n', ' ').split('\n'));
  const build = stepsOf(lines);
  const command = lines.findLast((line) => /^CMD /.test(line)) ?? lines.findLast((line) => /^ENTRYPOINT /.test(line));
  const start = plain(command?.replace(/^(?:CMD|ENTRYPOINT) /, '') ?? '');
  return { start, build, serves: /^(?:exec )?nginx\b/.test(start) ? served(lines) : undefined };
}

/** Each `RUN` in the folder that the last `WORKDIR` went to; /app is the top. */
function stepsOf(lines: readonly string[]): Step[] {
  let folder = '.';
  return lines.flatMap((line) => {
    const [, path] = /^WORKDIR "?\/app\/?([^"]{0,1000})"?$/.exec(line) ?? [];
    if (path !== undefined || line.startsWith('FROM ')) folder = path === undefined || path === '' ? '.' : path;
    return line.startsWith('RUN ') ? [{ command: line.slice(4), folder }] : [];
  });
}

/** `["sh","-c","exec npm start"]` and `npm start` are one command. */
function plain(command: string): string {
  if (!command.startsWith('[')) return command;
  const words = JSON.parse(command) as unknown;
  if (!Array.isArray(words)) return command;
  return words
    .map(String)
    .join(' ')
    .replace(/^sh -c (?:exec )?/, '');
}

/** Of `COPY --from=build ["/app/dist/","/srv/site/"]`: dist. */
function served(lines: readonly string[]): string {
  const copies = lines.filter((line) => /^COPY .{0,2000}\/srv\/site/.test(line));
  const [, from = '.'] = /"([^"]{1,1000})",\s{0,5}"\/srv\/site/.exec(copies.at(-1) ?? '') ?? [];
  return from.replace(/^\/app\/?/, '').replace(/\/$/, '') || '.';
}

/** The body of `COPY <<'EOF'` is no instruction. */
function withoutHeredocs(lines: readonly string[]): string[] {
  const kept: string[] = [];
  let end: string | undefined;
  for (const line of lines) {
    if (end !== undefined) {
      if (line === end) end = undefined;
      continue;
    }
    kept.push(line);
    end = /<<-?["']?(\w{1,40})["']?/.exec(line)?.[1];
  }
  return kept;
}
