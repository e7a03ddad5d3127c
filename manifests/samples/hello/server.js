// Says hello, and from where: a whole app in one file.
import { createServer } from 'node:http';
import { hostname } from 'node:os';

const port = Number(process.env.PORT ?? 8080);
const startedAt = new Date();
let greeted = 0;

const escape = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

function facts(request) {
  greeted += 1;
  return {
    hello: 'world',
    address: request.headers.host ?? 'unknown',
    replica: hostname(),
    node: process.version,
    upSeconds: Math.round((Date.now() - startedAt.getTime()) / 1000),
    greeted,
  };
}

function page({ address, replica, node, upSeconds, greeted }) {
  const row = (name, value) => `<dt>${name}</dt><dd>${escape(String(value))}</dd>`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Hello from Moorage</title>
<style>
  :root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif; }
  body { min-height: 100vh; margin: 0; display: grid; place-items: center; background: light-dark(#eef4f8, #0d1b26); color: light-dark(#12303f, #d9e8f0); }
  main { max-width: 34rem; margin: 1rem; padding: 2rem 2.5rem; border-radius: 1rem; background: light-dark(#fff, #142836); box-shadow: 0 1rem 3rem #0003; }
  h1 { margin: 0 0 .25rem; font-size: 2rem; }
  dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1.5rem; margin: 1.5rem 0 0; }
  dt { opacity: .65; } dd { margin: 0; font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
</style>
<main>
  <h1>Hello from Moorage</h1>
  <p>This page was a git repository a few minutes ago. It was reviewed, built in a sandbox, and given this address.</p>
  <dl>${row('Address', address)}${row('Replica', replica)}${row('Node', node)}${row('Up for', `${upSeconds} s`)}${row('Greeted', greeted)}</dl>
</main>
</html>
`;
}

const routes = {
  '/': (request) => ['text/html; charset=utf-8', page(facts(request))],
  '/api/hello': (request) => ['application/json', `${JSON.stringify(facts(request))}\n`],
  '/healthz': () => ['text/plain; charset=utf-8', 'ok\n'],
};

const server = createServer((request, response) => {
  const route = routes[request.url?.split('?', 1)[0] ?? '/'];
  if (route === undefined) {
    response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('Not here. Try / or /api/hello.\n');
    return;
  }
  const [type, body] = route(request);
  response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store' }).end(request.method === 'HEAD' ? undefined : body);
});

server.listen(port, () => console.log(`hello listens on port ${port}`));

// A replica that is removed serves what has reached it, then goes.
process.on('SIGTERM', () => {
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});
