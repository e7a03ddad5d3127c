// The port that a JavaScript or TypeScript file listens on regardless of $PORT.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findScriptPort as port } from '../../../../../../controller/pipeline/plan/node/port.ts';

test('takes the port of the call that listens', () => {
  const cases: readonly (readonly [string, number | undefined])[] = [
    ['server.listen({ host, port: 4000 })', 4000],
    ['app.listen(8123)', 8123],
    ['const PORT = 8123;\napp.listen(PORT)', 8123],
    ['const PORT = 5432\napp.listen(PORT)', 5432],
    ['serve({ fetch: app.fetch, port: 3001 })', 3001],
    ['Bun.serve({ port: 3002, fetch() {} })', 3002],
    ['export default { port: 3003, fetch: app.fetch }', 3003],
    ['http.createServer(app).listen(normalizePort("3004"))', 3004],
    ['const db = new Pool({ port: 5432 });\napp.listen(3000)', 3000],
    ['const client = createClient({ host, port: 8123 })', undefined],
    ['fetch("http://localhost:8123/query")', undefined],
    ['const help = `app.listen(3000)`', undefined],
    ['// app.listen(3000)', undefined],
    ['listen(80)', undefined],
    ['app.listen(port)', undefined],
  ];
  for (const [text, expected] of cases) assert.equal(port(text), expected, text);
});

test('leaves the port open if it follows $PORT', () => {
  for (const text of [
    'app.listen(process.env.PORT ?? 3000)',
    "const port = Number(process.env['PORT']) || 3000; app.listen(port)",
    'const { PORT = 3000 } = process.env; app.listen(PORT)',
    'Deno.serve({ port: Number(Deno.env.get("PORT") ?? 8000) }, handler)',
    'app.listen({ port: process.env.PORT ? +process.env.PORT : 3000 })',
  ])
    assert.equal(port(text), undefined, text);
});

test('takes the default of another variable, which the platform does not set', () => {
  assert.equal(port('app.listen(process.env.API_PORT || 4000)'), 4000);
});
