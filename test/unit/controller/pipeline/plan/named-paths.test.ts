// Which paths a README and code name, in the order in which they are tried.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findNamedPaths } from '../../../../../controller/pipeline/plan/named-paths.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';

const find = (files: Readonly<Record<string, string>>): string[] => findNamedPaths(createMemoryTree(files));

test.each([
  ['Flask', 'app.py', "@app.route('/chat')\ndef chat(): ...", ['/chat']],
  ['FastAPI', 'main.py', '@router.get("/items")\n@app.post("/predict")', ['/items', '/predict']],
  ['Django', 'site/urls.py', "path('', home),\npath('polls/', include('polls.urls')),", ['/polls/']],
  ['Express', 'server.js', "app.get('/health', f); app.post('/ask', g); app.get('/u/:id', h)", ['/health', '/ask']],
  ['Go', 'main.go', 'mux.HandleFunc("GET /status", f)\nr.POST("/run", g)', ['/status', '/run']],
  ['Sinatra', 'app.rb', "get '/hello' do\nend", ['/hello']],
  ['Axum', 'src/main.rs', '.route("/todos", get(list))', ['/todos']],
])('lists the routes of %s without parameters, those of GET first', (_, file, text, paths) => {
  assert.deepEqual(find({ [file]: text }), paths);
});

test('lists addresses of the README first, and pages without an index', () => {
  const files = {
    'README.md': 'Open http://localhost:8000/ui/. See https://example.org/docs and http://127.0.0.1:5000/api/v1.',
    'app.py': "@app.route('/chat')",
    'home.php': '',
  };
  assert.deepEqual(find(files), ['/ui', '/api/v1', '/home.php', '/chat']);
  assert.deepEqual(find({ 'index.html': '', 'about.html': '' }), []);
  assert.deepEqual(find({ 'src/app.html': '' }), [], 'a template of SvelteKit');
});

test('ignores tests, / and paths that change something, and lists a limited number', () => {
  assert.deepEqual(find({ 'tests/app.py': "@app.route('/x')", 'app.py': "@app.route('/')" }), []);
  assert.deepEqual(find({ 'app.py': "@app.get('/reset-all')\n@app.get('/logout')" }), []);
  const many = Array.from({ length: 30 }, (_, index) => `@app.get('/p${index}')`).join('\n');
  assert.equal(find({ 'app.py': many }).length, 8);
});
