// What is read of Rust sources.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Leaf } from '../../../../../../controller/pipeline/plan/syntax/leaves.ts';
import { parseRust } from '../../../../../../controller/pipeline/plan/syntax/rust.ts';

const show = (leaves: readonly Leaf[] = []): unknown[] =>
  leaves.map((leaf) =>
    leaf.kind === 'text' ? leaf.text : leaf.kind === 'number' ? leaf.number : `${leaf.kind} ${leaf.name}`,
  );

test('lists the parts of an address in the order of the code', () => {
  const parts = (address: string): unknown[] => show(parseRust(`fn main() { listen(${address}); }`).calls[0]?.args[0]);
  assert.deepEqual(parts('([127, 0, 0, 1], 3_000u16)'), ['127.0.0.1', 3000]);
  assert.deepEqual(parts('(std::net::Ipv4Addr::UNSPECIFIED, port)'), ['0.0.0.0', 'name port']);
  assert.deepEqual(parts('(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1)), 80)'), ['call IpAddr.V4', 80]);
  assert.deepEqual(parts('format!("0.0.0.0:{port}")'), ['0.0.0.0:{port}', 'name port']);
  assert.deepEqual(parts('&config.server.address'), ['name config.server.address']);
  assert.deepEqual(parts('Config { port: 1 }'), []);
});

test('reads values of variables, fields, attributes and results, and none of a test', () => {
  const { values } = parseRust(`
// const PORT: u16 = 1;
const PORT: u16 = 3000;
#[derive(Parser)]
struct Args {
    /// Port, 2
    #[arg(short, long = "http-port", env = "SHOP_PORT", default_value_t = 4000)]
    port: u16,
    #[serde(default)]
    name: String,
}
fn address() -> String { let host = "h"; format!("{}:{}", host, PORT) }
impl Default for Config { fn default() -> Self { Config { bind: "0.0.0.0:5000".into() } } }
#[cfg(test)]
mod tests { const PORT: u16 = 6000; }
`);
  assert.deepEqual(show(values.get('PORT')), [3000]);
  assert.deepEqual(show(values.get('port')), ['option --http-port', 'variable SHOP_PORT', 4000]);
  assert.deepEqual(show(values.get('address')), ['{}:{}', 'name host', 'name PORT']);
  assert.deepEqual(show(values.get('Config.bind')), ['call .into']);
  assert.equal(values.has('name'), false);
});

test('reads attributes, macros, uses, and what is compiled into the program', () => {
  const { attributes, macros, uses, embeds } = parseRust(`use sqlx::{query, PgPool};
#[folder = "web/dist"]
struct Assets;
#[launch]
fn rocket() -> _ { sqlx::query!("x"); include_str!("a.html"); include_dir!("$CARGO_MANIFEST_DIR/b"); println!("include_str!(c)") }
`);
  assert.deepEqual(attributes, ['folder', 'launch']);
  assert.deepEqual(macros, ['sqlx.query', 'include_str', 'include_dir', 'println']);
  assert.deepEqual(uses, ['sqlx.']);
  assert.deepEqual(
    embeds.map(({ path, kind, line }) => [path, kind, line]),
    [
      ['web/dist', 'folder', 2],
      ['a.html', 'file', 5],
      ['b', 'folder', 5],
    ],
  );
});

test('reads what can be read of wrong code, and nothing of code nested deeper than anybody writes', () => {
  assert.equal(parseRust('fn main() { listen("a" }}').calls[0]?.name, 'listen');
  assert.deepEqual(parseRust(`fn main() { a(); x = ${'f('.repeat(30_000)} }`).calls, []);
  assert.equal(parseRust(`fn main() { a(); x = 1${' + 1'.repeat(15_000)}; }`).calls[0]?.name, 'a');
});
