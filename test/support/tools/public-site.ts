// A site at an address that is public by every list, in a network of its own beside this machine: tools in the cluster
// fetch from it through all their guards and policies, as from the internet, which a machine of tests need not have.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { columns } from '../services/pdf-translator.ts';
import { createSpeech } from '../services/speech.ts';
import { lettersPng } from './letters.ts';

/** Of a block that its owners keep for trials and announce nowhere (44.128.0.0/16). */
const address = '44.128.0.80';
const port = 8080;
const network = 'moorage-site';
/** Ends of the cable between this machine and that network. */
const [near, far] = ['msite0', 'msite1'];

export const spokenSentence = 'The ship left the harbor at noon and sailed to the island.';

export interface PublicSite {
  readonly url: string;
  stop(): Promise<void>;
}

const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Container shipping</title>
<style>body{background:#036;color:#fff;font:20px sans-serif}</style>
<h1>Container shipping</h1><p>The first container ship sailed in 1956 from Newark to Houston, with fifty-eight containers.</p></html>`;

const ip = async (...args: readonly string[]): Promise<unknown> => execa('ip', args);

/** The other side answers for every address that it is asked for, and routes to it. */
async function lay(): Promise<void> {
  await unlay();
  await ip('netns', 'add', network);
  await ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', network);
  await ip('link', 'set', near, 'up');
  writeFileSync(`/proc/sys/net/ipv4/conf/${near}/proxy_arp`, '1');
  await ip('-n', network, 'address', 'add', `${address}/32`, 'dev', far);
  await ip('-n', network, 'link', 'set', far, 'up');
  await ip('-n', network, 'route', 'add', 'default', 'dev', far);
  await ip('route', 'replace', `${address}/32`, 'dev', near);
}

/** The cable goes with its network. */
async function unlay(): Promise<void> {
  await execa('ip', ['netns', 'delete', network], { reject: false });
  await execa('ip', ['link', 'delete', near], { reject: false });
}

/** Needs root, for the network. */
export async function startPublicSite(): Promise<PublicSite> {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-site-'));
  const files = {
    'page.html': html,
    'spoken.mp3': await createSpeech(spokenSentence, 'mp3'),
    'columns.pdf': columns(),
    'letters.png': await lettersPng(['HARBOUR MASTER', 'Berth 42']),
  };
  for (const [name, body] of Object.entries(files)) writeFileSync(join(folder, name), body);
  await lay();
  const ending = new AbortController();
  const server = execa(
    'ip',
    ['netns', 'exec', network, 'python3', '-m', 'http.server', String(port), '--directory', folder],
    { reject: false, cancelSignal: ending.signal, stdio: 'ignore' },
  );
  const url = `http://${address}:${port}`;
  for (let left = 100; !(await answers(url)); left -= 1) {
    if (left === 0) throw new Error(`${url} does not answer`);
    await sleep(100);
  }
  return {
    url,
    async stop() {
      ending.abort();
      await server;
      await unlay();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  return await fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}
