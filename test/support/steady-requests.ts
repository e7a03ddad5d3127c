// One request every 100 ms to an app with a volume while something happens to it, and what became of each; shared by the
// end-to-end test of a swap and its bench.
import { setTimeout as sleep } from 'node:timers/promises';
import { get } from './cluster.ts';

/** What became of the requests of a while. */
export interface RequestLog {
  readonly count: number;
  /** Status or error of each that failed, with the second in which it was sent. */
  readonly failures: readonly string[];
  /** Milliseconds that the slowest one waited for its whole response. */
  readonly longestMs: number;
  readonly bodies: ReadonlySet<string>;
}

const everyMs = 100;

/** Sends requests, open loop, until `until` ends and `afterMs` have passed, and waits for the last response. */
export async function requestSteadily(url: URL, until: Promise<unknown>, afterMs = 5_000): Promise<RequestLog> {
  const failures: string[] = [];
  const bodies = new Set<string>();
  const pending: Promise<void>[] = [];
  let longestMs = 0;
  const startedAt = performance.now();
  const send = async (): Promise<void> => {
    const sentAt = performance.now();
    const second = ((sentAt - startedAt) / 1000).toFixed(1);
    try {
      const { status, body } = await get(url);
      if (status === 200) bodies.add(body);
      else failures.push(`${second} s: ${status} ${body.slice(0, 120)}`);
    } catch (error) {
      failures.push(`${second} s: ${String(error)}`);
    }
    longestMs = Math.max(longestMs, performance.now() - sentAt);
  };
  const ended = new AbortController();
  const stopped = until.then(async () => {
    await sleep(afterMs);
  });
  const end = (): void => {
    ended.abort();
  };
  void stopped.then(end, end);
  for (let count = 0; !ended.signal.aborted; count += 1) {
    pending.push(send());
    await sleep(Math.max(0, startedAt + (count + 1) * everyMs - performance.now()));
  }
  await stopped;
  await Promise.all(pending);
  return { count: pending.length, failures, longestMs, bodies };
}

/** A server that keeps a count on its volume. Python ignores the signal to end unless it has a handler for it. */
export const volumeAppFiles: Readonly<Record<string, string>> = {
  'app.py': `import http.server, os, pathlib
version = 'version 1'
starts = pathlib.Path('/data/starts')
starts.write_text(str(int(starts.read_text()) + 1 if starts.exists() else 1))
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        body = f'{version}, start {starts.read_text()}'.encode()
        self.send_response(200); self.send_header('content-length', str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
# With the 5 of Python, a connection that comes while the machine is busy is lost, and with its pod hangs for minutes.
http.server.ThreadingHTTPServer.request_queue_size = 1024
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`,
  'requirements.txt': '',
  'moorage.yaml': 'run:\n  volumes: [{name: data, path: /data, size: 64Mi}]\n',
};
