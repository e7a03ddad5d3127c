// What is planned for Rust programs: where they listen, and which of them cargo alone cannot build.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Rejected } from '../../../../../../controller/pipeline/contract.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import type { Recipe } from '../../../../../../controller/pipeline/plan/recipe.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';

const manifest = '[package]\nname = "shop"\n[dependencies]\naxum = "0.8"\n';
const plan = (files: Record<string, string>): Recipe =>
  makePlan(createMemoryTree({ 'Cargo.toml': manifest, ...files }), sampleInput());
const body = (code: string, items = ''): string => `${items}\n#[tokio::main]\nasync fn main() {\n${code}\n}\n`;
const line = (recipe: Recipe, start: string): string =>
  (recipe.dockerfile ?? '')
    .split('\n')
    .filter((each) => each.startsWith(start))
    .join('\n');
const bind = (address: string): string => `let l = tokio::net::TcpListener::bind(${address}).await.unwrap();`;

const ports: readonly (readonly [name: string, code: string, port: number, items?: string])[] = [
  ['a literal', bind('"0.0.0.0:4000"'), 4000],
  ['a socket address', `let addr = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 4001));\n${bind('&addr')}`, 4001],
  [
    'an address of numbers',
    `let addr = SocketAddr::from(([0, 0, 0, 0], 4_002u16));\naxum::Server::bind(&addr).serve(app);`,
    4002,
  ],
  ['a tuple', 'HttpServer::new(|| App::new()).bind(("0.0.0.0", 4003))?.run().await', 4003],
  [
    'an option',
    bind('format!("0.0.0.0:{}", args.port)'),
    4004,
    'struct Args {\n#[arg(short, long, default_value = "4004")]\nport: u16,\n}',
  ],
  ['a variable in a format', `let port = 4005;\n${bind('format!("0.0.0.0:{port}")')}`, 4005],
  [
    'a constant of a function',
    bind('config().address()'),
    4006,
    'const PORT: u16 = 4006;\nimpl Config { fn address(&self) -> String { format!("0.0.0.0:{}", PORT) } }',
  ],
  [
    'the default of a variable',
    `let port = env::var("SHOP_PORT").unwrap_or_else(|_| "4007".to_string());\n${bind('format!("0.0.0.0:{}", port)')}`,
    4007,
  ],
  ['warp', 'warp::serve(routes).run(([0, 0, 0, 0], 4008)).await;', 4008],
  ['a port of Rocket', 'rocket::custom(Config::build(Environment::Production).port(4009).finalize()).launch();', 4009],
  ['Rocket without a port', 'rocket::build().mount("/", routes![index]).launch().await;', 8080],
  [
    '$PORT, with a default',
    `let port = std::env::var("PORT").unwrap_or("4010".into());\n${bind('format!("0.0.0.0:{}", port)')}`,
    8080,
  ],
  [
    'the code, and not from a test',
    bind('"0.0.0.0:4011"'),
    4011,
    '#[cfg(test)]\nmod tests { fn spawn() { TcpListener::bind("0.0.0.0:9999"); } }',
  ],
  ['the code, and not from a comment', `/* env::var("PORT") */\n${bind('"0.0.0.0:4012"')}`, 4012],
  ['the code, and not from a query', `sqlx::query("x").bind("a:9999").bind(9998);\n${bind('"0.0.0.0:4013"')}`, 4013],
];

for (const [name, code, port, items] of ports)
  test(`reads the port from ${name}`, () => {
    const { plan: planned, findings, dockerfile } = plan({ 'src/main.rs': body(code, items) });
    assert.equal(planned.port, port);
    assert.deepEqual(findings, []);
    assert.doesNotMatch(dockerfile ?? '', /RUN sed/);
  });

test.each([
  [bind('"127.0.0.1:4000"'), String.raw`'4s/"127\.0\.0\.1:4000"/"0.0.0.0:4000"/'`],
  [bind('SocketAddr::from(([127, 0, 0, 1], 4000))'), String.raw`'4s/\[127, 0, 0, 1\]/[0, 0, 0, 0]/'`],
  ['HttpServer::new(app).bind(("localhost", 4000))?.run()', `'4s/"localhost"/"0.0.0.0"/'`],
  [bind('(Ipv4Addr::LOCALHOST, 4000)'), '4s/Ipv4Addr::LOCALHOST/Ipv4Addr::UNSPECIFIED/'],
])('opens an address that only the container reaches: %s', (code, script) => {
  const recipe = plan({ 'src/main.rs': body(code) });
  assert.equal(recipe.plan.port, 4000);
  assert.equal(line(recipe, 'RUN sed'), `RUN sed -i ${script} src/main.rs`);
  assert.deepEqual(
    recipe.findings.map(({ rule, file, line: at }) => [rule, file, at]),
    [['plan/listen-address', 'src/main.rs', 4]],
  );
});

test('gives the address by the option or the variable that the code reads', () => {
  const args = (attribute: string): string =>
    body(
      bind('args.bind_addr'),
      `struct Args {\n#[clap(${attribute}, default_value = "127.0.0.1:4000")]\nbind_addr: String,\n}`,
    );
  const option = plan({ 'src/main.rs': args('long') });
  assert.match(line(option, 'CMD'), /server --bind-addr=0\.0\.0\.0:4000"/);
  const variable = plan({ 'src/main.rs': args('long = "bind", env = "BIND_ADDR"') });
  assert.match(line(variable, 'ENV PORT'), / BIND_ADDR=0\.0\.0\.0:4000$/);
  for (const each of [option, variable]) assert.equal(each.plan.port, 4000);
});

test('reads only the packages that the program depends on', () => {
  const recipe = plan({
    'Cargo.toml':
      '[workspace]\nmembers = ["web", "core", "a-probe"]\n[workspace.dependencies]\ncore = { path = "core" }\n',
    'web/Cargo.toml': '[package]\nname = "web"\n[dependencies]\ncore = { workspace = true }\n',
    'web/src/main.rs': body('core::serve();'),
    'core/Cargo.toml': '[package]\nname = "core"\n',
    'core/src/lib.rs': `pub fn serve() { ${bind('"0.0.0.0:4000"')} }`,
    'a-probe/Cargo.toml': '[package]\nname = "a-probe"\n',
    'a-probe/src/lib.rs': `pub fn serve() { ${bind('"0.0.0.0:3999"')} }`,
  });
  assert.equal(recipe.plan.port, 4000);
});

const refused = (files: Record<string, string>): { rule: string; file?: string | undefined; message: string } => {
  try {
    plan(files);
  } catch (error) {
    if (error instanceof Rejected) return error.findings[0];
    throw error;
  }
  assert.fail('it is planned');
};

test('rejects programs that are compiled for the server and the browser', () => {
  const leptos = refused({
    'Cargo.toml': `${manifest}leptos = { version = "0.7", optional = true }\n[package.metadata.leptos]\nsite-root = "target/site"\n`,
    'src/main.rs': body(''),
  });
  assert.equal(leptos.rule, 'plan/half-app');
  assert.match(leptos.message, /This is a Leptos app/);
  const web = '[package]\nname = "web"\n[dependencies]\ndioxus = { workspace = true, features = ["fullstack"] }\n';
  const dioxus = refused({
    'Cargo.toml': '[workspace]\nmembers = ["packages/web"]\n[workspace.dependencies]\ndioxus = "0.7"\n',
    'packages/web/Cargo.toml': web,
    'packages/web/src/main.rs': 'fn main() { dioxus::launch(App); }',
  });
  assert.deepEqual([dioxus.rule, dioxus.file], ['plan/half-app', 'packages/web/Cargo.toml']);
});

test('rejects windows and pages of Dioxus', () => {
  const dioxus = (dependencies: string): string => `[package]\nname = "shop"\n[dependencies]\n${dependencies}\n`;
  const files = (dependencies: string): Record<string, string> => ({
    'Cargo.toml': dioxus(dependencies),
    'src/main.rs': 'fn main() { dioxus::launch(App); }',
  });
  assert.match(refused(files('dioxus = "0.4"\ndioxus-desktop = "0.4"')).message, /desktop app \(Dioxus\)/);
  assert.match(
    refused(files('dioxus = { version = "0.6", features = ["desktop"] }')).message,
    /desktop app \(Dioxus\)/,
  );
  assert.equal(refused(files('dioxus = { version = "0.6", features = ["web"] }')).rule, 'plan/browser-program');
});

const tool = (dependencies: string): string => `[package]\nname = "shop"\n[dependencies]\n${dependencies}\n`;
const lock = (...crates: readonly string[]): string => crates.map((each) => `[[package]]\nname = "${each}"\n`).join('');

test('rejects a program that draws its own windows', () => {
  const files = { 'Cargo.toml': tool('iced = "0.14"\ntokio = "1"'), 'src/main.rs': body('iced::run();') };
  const { rule, message } = refused(files);
  assert.equal(rule, 'plan/desktop-app');
  assert.match(message, /desktop app \(iced\)/);
  for (const each of [
    { ...files, 'Cargo.toml': tool('iced = { version = "0.14", optional = true }') },
    { ...files, 'Cargo.toml': tool('iced = "0.14"\naxum = "0.8"') },
    { ...files, 'src/main.rs': body(bind('"0.0.0.0:4000"')) },
    { ...files, Procfile: 'web: ./shop --headless' },
  ])
    assert.equal(plan(each).plan.strategy, 'rust');
});

test('rejects a program that cannot listen', () => {
  const files = {
    'Cargo.toml': tool('clap = "4"'),
    'Cargo.lock': lock('shop', 'clap', 'regex'),
    'src/main.rs': body('println!("shop");'),
  };
  const { rule, message } = refused(files);
  assert.equal(rule, 'plan/no-server');
  assert.match(message, /The program shop is a tool for a terminal: nothing in its code listens/);
  for (const each of [
    { ...files, 'Cargo.lock': lock('shop', 'mio') },
    { ...files, 'Cargo.lock': lock('shop', 'tiny_http') },
    { ...files, 'src/main.rs': body('let l = std::net::TcpListener::bind("0.0.0.0:4000").unwrap();') },
    { ...files, Procfile: 'web: ./shop serve' },
    // Without a lock file, the crates behind the listed ones are unknown.
    { 'Cargo.toml': files['Cargo.toml'], 'src/main.rs': files['src/main.rs'] },
  ])
    assert.equal(plan(each).plan.strategy, 'rust');
});

test('rejects what compiles files into the program that the repository does not have', () => {
  const code = '#[derive(RustEmbed)]\n#[folder = "web/dist/"]\nstruct Assets;\n';
  const missing = refused({ 'src/main.rs': body('', code) });
  assert.equal(missing.rule, 'plan/missing-part');
  assert.match(missing.message, /compiles web\/dist into the program, and the repository does not have it/);
  assert.match(
    refused({ 'src/main.rs': body('', '#[folder = "../web"]\nstruct A;') }).message,
    /outside of the folder/,
  );
  assert.match(
    refused({ 'src/main.rs': body('let a = include_str!("../page.html");') }).message,
    /compiles page\.html/,
  );
  for (const each of [
    { 'src/main.rs': body('', code), 'web/dist/index.html': '' },
    { 'src/main.rs': body('// include_str!("../page.html")\nlet a = include_str!(concat!(env!("OUT_DIR"), "/x"));') },
  ])
    assert.equal(plan(each).plan.strategy, 'rust');
});

test('rejects queries that are checked by a database when they are compiled', () => {
  const query = body('sqlx::query_as!(User, "SELECT 1").fetch_all(&pool).await;');
  assert.deepEqual(
    [refused({ 'src/main.rs': query })].map(({ rule, file }) => [rule, file]),
    [['plan/database-in-build', 'src/main.rs']],
  );
  assert.equal(
    refused({ 'src/main.rs': `use sqlx::{query, PgPool};\n${body('query!("x");')}` }).rule,
    'plan/database-in-build',
  );
  for (const each of [
    { 'src/main.rs': query, '.sqlx/query-1.json': '{}' },
    { 'src/main.rs': body('sqlx::query("SELECT 1"); // sqlx::query!("x")') },
    { 'src/main.rs': body('query!("x");') },
  ])
    assert.equal(plan(each).plan.strategy, 'rust');
});
