// A site at an address that is public by every list, on this machine: tools in the cluster fetch from it through all
// their guards and policies, as from the internet, which a machine of tests need not have.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { execa } from 'execa';
import { columns } from '../services/pdf-translator.ts';
import { speak } from '../services/speech.ts';
import { lettersPng } from './letters.ts';

/** Of a block that its owners keep for trials and announce nowhere (44.128.0.0/16). */
const address = '44.128.0.80';
const port = 8080;

export const spokenSentence = 'The ship left the harbor at noon and sailed to the island.';

export interface PublicSite {
  readonly url: string;
  /** What was asked for: method and path. */
  readonly asked: readonly string[];
  stop(): Promise<void>;
}

const html = `<!doctype html><html lang="en"><title>Container shipping</title><style>body{background:#036;color:#fff;font:20px sans-serif}</style>
<h1>Container shipping</h1><p>The first container ship sailed in 1956 from Newark to Houston, with fifty-eight containers.</p></html>`;

/** Needs root, for the address. */
export async function startPublicSite(): Promise<PublicSite> {
  const files: Readonly<Record<string, readonly [type: string, body: string | Uint8Array]>> = {
    '/page.html': ['text/html; charset=utf-8', html],
    '/spoken.mp3': ['audio/mpeg', speak(spokenSentence, 'mp3')],
    '/columns.pdf': ['application/pdf', columns()],
    '/letters.png': ['image/png', await lettersPng(['HARBOUR MASTER', 'Berth 42'])],
  };
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method ?? ''} ${request.url ?? ''}`);
    const [type, body] = files[request.url ?? ''] ?? [];
    if (type === undefined) response.writeHead(404, { 'content-type': 'text/plain' }).end('nothing here');
    else response.writeHead(200, { 'content-type': type }).end(body);
  });
  await execa('ip', ['address', 'replace', `${address}/32`, 'dev', 'lo']);
  server.listen(port, address);
  await once(server, 'listening');
  return {
    url: `http://${address}:${port}`,
    asked,
    async stop() {
      server.closeAllConnections();
      server.close();
      await execa('ip', ['address', 'delete', `${address}/32`, 'dev', 'lo']);
    },
  };
}
