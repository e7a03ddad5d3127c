// What is read of Go sources.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parseGo } from '../../../../../../controller/pipeline/plan/syntax/go.ts';
import type { Leaf } from '../../../../../../controller/pipeline/plan/syntax/leaves.ts';

const show = (leaves: readonly Leaf[] = []): unknown[] =>
  leaves.map((leaf) =>
    leaf.kind === 'text' ? leaf.text : leaf.kind === 'number' ? leaf.number : `${leaf.kind} ${leaf.name}`,
  );
const inMain = (code: string): string => `package main\n\nfunc main() {\n${code}\n}\n`;

test('lists the parts of an address in the order of the code', () => {
  const parts = (address: string): unknown[] => show(parseGo(inMain(`listen(${address})`)).calls[0]?.args[0]);
  assert.deepEqual(parts('":" + *port'), [':', 'name port']);
  assert.deepEqual(parts('cfg.Host + ":" + os.Getenv("PORT")'), ['name cfg.Host', ':', 'variable PORT']);
  assert.deepEqual(parts('host + ":" + cfg.Server.Port'), ['name host', ':', 'name cfg.Server.Port']);
  assert.deepEqual(parts('getEnv("SHOP_PORT", "4000")'), ['variable SHOP_PORT', '4000']);
  assert.deepEqual(parts('viper.GetString("server.port")'), ['name server.port']);
  assert.deepEqual(parts('fmt.Sprintf(":%d", 4_000)'), ['call fmt.Sprintf']);
  assert.deepEqual(parts('&http.Server{Addr: ":1"}'), []);
});

test('reads values of variables, fields, options and results, and none of a comment or a text', () => {
  const { values } = parseGo(`package x

// const port = "1"
const help = "port = 2"
const port = "3000"

type Config struct {
	Port string \`env:"SHOP_PORT" envDefault:"4000"\`
}

func Address() string { return host + port }

func init() {
	flag.StringVar(&addr, "addr", ":5000", "usage :6000")
	pflag.StringVarP(&bind, "bind", "b", ":7000", "usage")
	config.Server.Port = "8000"
	value, found := os.LookupEnv("NAME")
	set := Options{Listen: ":9000"}
}
`);
  const read = (name: string): unknown[] => show(values.get(name));
  assert.deepEqual(read('port'), ['3000']);
  assert.deepEqual(
    read('Config.Port'),
    ['variable SHOP_PORT', '4000'].toSorted((one) => (one === '4000' ? 1 : -1)),
  );
  assert.deepEqual(read('Address'), ['name host', 'name port']);
  assert.deepEqual(read('addr'), ['option -addr', ':5000']);
  assert.deepEqual(read('bind'), ['option --bind', ':7000']);
  assert.deepEqual(read('Server.Port'), ['8000']);
  assert.deepEqual(read('value'), ['variable NAME']);
  assert.deepEqual(read('Options.Listen'), [':9000']);
});

test('states the line of a literal', () => {
  const [leaf] = parseGo(inMain('\nlisten(":1")')).calls[0]?.args[0] ?? [];
  assert.equal(leaf?.kind === 'text' ? leaf.line : 0, 5);
});

test('reads what can be read of wrong code, and nothing of code nested deeper than anybody writes', () => {
  assert.equal(parseGo(`${inMain('listen(":1"')}}}`).calls[0]?.name, 'listen');
  for (const [open, close] of ['()', '{}', '[]'])
    assert.deepEqual(parseGo(inMain(`a()\nx := ${`f${open}`.repeat(30_000)}${close}`)).calls, []);
  assert.equal(parseGo(inMain(`a()\nx := 1${' + 1'.repeat(15_000)}`)).calls[0]?.name, 'a');
});
