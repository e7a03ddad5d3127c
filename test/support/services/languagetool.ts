// Starts a real LanguageTool server on loopback, from Maven Central; it has loaded its rules when this returns.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { paths } from '../../../localnode/paths.ts';
import { runExclusively } from '../exclusively.ts';
import { aptInstall, type LocalServer } from './python.ts';
import { findFreePort } from '../free-port.ts';

const pom = join(paths.root, 'localnode', 'images', 'languagetool', 'pom.xml');
const version = /<languagetool>([^<]+)</.exec(readFileSync(pom, 'utf8'))?.[1] ?? '';

/** Its settings as in our image: what it has loaded for one text, it keeps for the next. */
const image = join(paths.root, 'localnode', 'images', 'languagetool', 'Dockerfile');
const settings = [...readFileSync(image, 'utf8').matchAll(/\blangtool_(\w+=\w+)/g)].map(([, setting]) => setting);

const germanAndFrench = { 'de-DE': 'Ein Feler, ein Tset.', 'de-CH': 'Ein Feler, ein Tset.', fr: 'Un esssai.' };

/** `texts`: a text with a misspelling in each language that is asked for. */
export async function startLanguageTool(
  texts: Readonly<Record<string, string>> = germanAndFrench,
): Promise<LocalServer> {
  const jars = await runExclusively(install);
  const port = await findFreePort();
  const folder = mkdtempSync(join(tmpdir(), 'moorage-languagetool-'));
  const config = join(folder, 'settings');
  writeFileSync(config, settings.join('\n'));
  // Quick to start rather than quick in the long run.
  const child = spawn(
    'java',
    [
      '-XX:TieredStopAtLevel=1',
      '-XX:+UseSerialGC',
      '-Xmx1g',
      '-cp',
      join(jars, '*'),
      'org.languagetool.server.HTTPServer',
      '--port',
      String(port),
      '--config',
      config,
    ],
    { stdio: 'ignore' },
  );
  const atExit = (): void => {
    child.kill('SIGKILL');
  };
  process.once('exit', atExit);
  const ended = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  await alive(url, child);
  // Rules of a language are read when it is asked for first, and its words when one is misspelled.
  for (const [language, text] of Object.entries(texts)) await ask(url, language, text);
  return {
    url,
    async stop() {
      process.off('exit', atExit);
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

function install(): string {
  const folder = join(paths.cache, 'languagetool', `${version}-all`);
  const complete = join(folder, '.complete');
  if (existsSync(complete)) return folder;
  if (!existsSync('/usr/bin/mvn') || !existsSync('/usr/bin/java')) aptInstall('default-jre-headless', 'maven');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  execFileSync(
    'mvn',
    [
      '-q',
      '-B',
      '-f',
      pom,
      'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies',
      `-DoutputDirectory=${folder}`,
      '-DincludeScope=runtime',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  writeFileSync(complete, '');
  return folder;
}

async function alive(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`LanguageTool ended with ${child.exitCode}`);
    const answer = await fetch(`${url}/v2/languages`).catch(() => undefined);
    if (answer?.ok === true) return;
    await sleep(200);
  }
}

async function ask(url: string, language: string, text: string): Promise<void> {
  const answer = await fetch(`${url}/v2/check`, { method: 'POST', body: new URLSearchParams({ language, text }) });
  if (!answer.ok) throw new Error(`LanguageTool answered with ${answer.status}: ${await answer.text()}`);
}
