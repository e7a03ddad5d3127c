// What is planned for Go programs: the program that is started, its options, and where it listens.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Rejected } from '../../../../../../controller/pipeline/contract.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import type { Recipe } from '../../../../../../controller/pipeline/plan/recipe.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';

const plan = (files: Record<string, string>): Recipe =>
  makePlan(createMemoryTree({ 'go.mod': 'module x\n', ...files }), sampleInput());
const body = (code: string, declarations = ''): string =>
  `package main\n\n${declarations}\n\nfunc main() {\n${code}\n}\n`;
const line = (recipe: Recipe, start: string): string =>
  (recipe.dockerfile ?? '')
    .split('\n')
    .filter((each) => each.startsWith(start))
    .join('\n');

const ports: readonly (readonly [name: string, code: string, port: number, declarations?: string])[] = [
  ['a literal', 'log.Fatal(http.ListenAndServe(":4000", mux))', 4000],
  ['the field of a server', 'srv := &http.Server{Handler: mux, Addr: ":4001"}\nsrv.ListenAndServe()', 4001],
  [
    'a constant as the default of an option',
    'p := flag.String("port", port_, "server port")\nr.Run(":" + *p)',
    4002,
    'const port_ = "4002"',
  ],
  ['a listener', 'l, _ := net.Listen("tcp", "0.0.0.0:4003")\nhttp.Serve(l, nil)', 4003],
  [
    'a variable whose default follows',
    'addr := ":4004"\nif a := os.Getenv("SHOP_ADDRESS"); a != "" {\naddr = a\n}\nhttp.ListenAndServe(addr, nil)',
    4004,
  ],
  [
    'the default of a function',
    'http.ListenAndServe(address(), nil)',
    4005,
    'func address() string {\nreturn fmt.Sprintf("%v:%v", getEnv("SHOP_HOST", "0.0.0.0"), getEnv("SHOP_PORT", "4005"))\n}',
  ],
  [
    'the tag of a field',
    'var o opts\napp.Listen(":" + o.Port)',
    4006,
    'type opts struct {\nPort string `long:"port" default:"4006"`\n}',
  ],
  [
    'an argument of a function of its own',
    'serve(":4007")',
    4007,
    'func serve(addr string) {\nhttp.ListenAndServe(addr, nil)\n}',
  ],
  [
    'a default of viper',
    'viper.SetDefault("server.port", 4008)\nr.Run(fmt.Sprintf(":%d", viper.GetInt("server.port")))',
    4008,
  ],
  [
    'the public one of two addresses',
    'go http.ListenAndServe("localhost:6060", nil)\nhttp.ListenAndServe(":4009", nil)',
    4009,
  ],
  ['$PORT, with a default', 'port := os.Getenv("PORT")\nif port == "" {\nport = "4010"\n}\nr.Run(":" + port)', 8080],
  [
    'the code, and not from a comment',
    '/* os.Getenv("PORT")\nhttp.ListenAndServe(":9999", nil) */\nhttp.ListenAndServe(":4011", nil)',
    4011,
  ],
  [
    'the code, and not from a text',
    'fmt.Println(`port = "9999"`, "Addr: \\":9998\\"")\nhttp.ListenAndServe(":4012", nil)',
    4012,
  ],
  [
    'the code, and not from what connects',
    'net.Dial("tcp", "127.0.0.1:9999")\nredisPort := "9997"\n_ = redisPort\nhttp.ListenAndServe(":4013", nil)',
    4013,
  ],
];

for (const [name, code, port, declarations] of ports)
  test(`reads the port from ${name}`, () => {
    const { plan: planned, findings, dockerfile } = plan({ 'main.go': body(code, declarations) });
    assert.equal(planned.port, port);
    assert.deepEqual(findings, []);
    assert.doesNotMatch(dockerfile ?? '', /RUN sed/);
  });

test('does not read the port of another program of the module', () => {
  const files = {
    'cmd/web/main.go': body('http.ListenAndServe(":4000", nil)'),
    'cmd/admin/main.go': body('http.ListenAndServe(":3999", nil)'),
  };
  const { plan: planned } = plan(files);
  assert.equal(planned.port, 4000);
  assert.equal(planned.certainty, 'guessed');
});

test('opens an address that only the container reaches, and names the line', () => {
  const recipe = plan({ 'main.go': body('http.ListenAndServe("127.0.0.1:4000", nil)') });
  assert.equal(recipe.plan.port, 4000);
  assert.equal(line(recipe, 'RUN sed'), String.raw`RUN sed -i '6s/"127\.0\.0\.1:4000"/"0.0.0.0:4000"/' main.go`);
  const [finding] = recipe.findings;
  assert.equal(finding?.rule, 'plan/listen-address');
  assert.equal(finding.line, 6);
  assert.match(finding.message, /only the container itself reaches: "127\.0\.0\.1:4000"\. .*"0\.0\.0\.0:4000"/);
});

test('replaces a port that needs a privilege', () => {
  const recipe = plan({ 'main.go': body('http.ListenAndServe(":80", nil)') });
  assert.equal(recipe.plan.port, 8080);
  assert.equal(line(recipe, 'RUN sed'), `RUN sed -i '6s/":80"/":8080"/' main.go`);
  assert.match(recipe.findings[0]?.message ?? '', /a port below 1024/);
});

test('gives the address by the option or the variable that the code reads', () => {
  const option = plan({
    'main.go': body('addr := flag.String("addr", "localhost:80", "address")\nhttp.ListenAndServe(*addr, nil)'),
  });
  assert.match(line(option, 'CMD'), /exec \/usr\/local\/bin\/server -addr=0\.0\.0\.0:\$PORT"/);
  const open = plan({
    'main.go': body('r.Listen(fmt.Sprintf("%s:%d", viper.GetString("APP_HOST"), viper.GetInt("APP_PORT")))'),
  });
  assert.match(line(open, 'ENV PORT'), / APP_PORT=8080$/);
  const host = plan({ 'main.go': body('r.Run(getEnv("APP_HOST", "127.0.0.1") + ":" + os.Getenv("PORT"))') });
  assert.match(line(host, 'ENV PORT'), / APP_HOST=0\.0\.0\.0$/);
  const parts = plan({ 'main.go': body('r.Listen(os.Getenv("APP_ADDR") + ":" + os.Getenv("APP_PORT"))') });
  assert.match(line(parts, 'ENV PORT'), / APP_ADDR=0\.0\.0\.0 APP_PORT=8080$/);
  const whole = plan({ 'main.go': body('r.Listen(os.Getenv("APP_ADDR"))') });
  assert.match(line(whole, 'ENV PORT'), / APP_ADDR=0\.0\.0\.0:8080$/);
  const alone = plan({
    'main.go': body(
      'if env.Port[0] != \':\' {\nenv.Port = ":" + env.Port\n}\nr.Run(env.Port)',
      'type Env struct {\nPort string `mapstructure:"APP_PORT"`\n}',
    ),
  });
  assert.match(line(alone, 'ENV PORT'), / APP_PORT=8080$/);
  for (const each of [option, open, host, parts, whole, alone]) assert.deepEqual(each.findings, []);
});

test('reads the address in a file of settings that the code names', () => {
  const recipe = plan({
    'main.go': body('c, _ := config.Load("config.yaml")\nhttp.ListenAndServe(c.Address(), nil)'),
    'config.yaml': 'db:\n  host: localhost\n  port: 3306\nserver:\n  host: localhost\n  port: 4000\n',
  });
  assert.equal(recipe.plan.port, 4000);
  assert.equal(
    (recipe.dockerfile ?? '').match(/^RUN sed -i 5s\/localhost\/0\.0\.0\.0\/ config\.yaml$/gm)?.length,
    2,
    'in the stage that compiles and in the one that runs',
  );
});

test('starts the subcommand that serves only if the program does nothing without one', () => {
  const serve =
    '&cobra.Command{\nUse: "serve [flags]",\nPersistentPreRun: func() { x := map[string]int{} },\nRunE: run,\n}';
  const withRoot = (root: string): string =>
    body(
      'root.AddCommand(serve, migrate)\nroot.Execute()',
      `var root = ${root}\nvar serve = ${serve}\nvar migrate = &cobra.Command{Use: "migrate", Run: move}`,
    );
  const idle = plan({ 'main.go': withRoot('&cobra.Command{Use: "shop"}') });
  assert.match(line(idle, 'CMD'), /server serve"/);
  const running = plan({ 'main.go': withRoot('&cobra.Command{Use: "shop", Run: run}') });
  assert.match(line(running, 'CMD'), /server"\]$/);
  const other = plan({
    'main.go': body(
      'app := &cli.App{Name: "shop", Commands: []*cli.Command{{Name: "start", Action: run}}}\napp.Run(os.Args)',
    ),
  });
  assert.match(line(other, 'CMD'), /server start"/);
});

test('makes the .env without which a program ends, with the settings if it reads no others', () => {
  const load = body('if err := godotenv.Load(); err != nil {\nlog.Fatal(err)\n}');
  assert.match(line(plan({ 'main.go': load }), 'RUN touch'), /^RUN touch \.env && chown 1000:1000 \.env$/);
  assert.match(line(plan({ 'main.go': load }), 'CMD'), /"exec /);
  const viper = body('viper.SetConfigFile(path + ".env")\nviper.ReadInConfig()');
  assert.match(line(plan({ 'main.go': viper }), 'CMD'), /"printenv > \.env; exec \/usr\/local\/bin\/server"/);
  for (const files of [{ 'main.go': viper, '.env': 'A=b\n' }, { 'main.go': body('// godotenv.Load()') }])
    assert.doesNotMatch(plan(files).dockerfile ?? '', /touch|printenv/);
});

test('rejects a program that opens a window, unless it listens too', () => {
  const files = { 'go.mod': 'module x\n\nrequire fyne.io/fyne/v2 v2.3.2\n', 'main.go': body('w.ShowAndRun()') };
  assert.throws(
    () => plan(files),
    (error: unknown) => error instanceof Rejected && error.findings[0].rule === 'plan/desktop-app',
  );
  assert.equal(plan({ ...files, 'main.go': body('http.ListenAndServe(":4000", nil)') }).plan.port, 4000);
});

test('embeds nothing that only a text mentions', () => {
  const files = {
    'main.go': body('', 'var help = `\n//go:embed web/dist\n`'),
    'web/package.json': JSON.stringify({ scripts: { build: 'vite build' } }),
  };
  assert.doesNotMatch(plan(files).dockerfile ?? '', /frontend/);
});

test('does not start a program that a build tag leaves out, or that a text shows', () => {
  const files = {
    'gen/main.go': `//go:build ignore\n\n${body('')}`,
    'docs.go': 'package x\n\nconst example = `\npackage main\n\nfunc main() {}\n`\n',
    'cmd/shop/main.go': body(''),
  };
  assert.match(plan(files).plan.reason, /cmd\/shop is its package main\.$/);
});

test('rejects a program that answers HTTPS alone', () => {
  const tls = 'log.Fatal(s.ListenAndServeTLS("./tls/cert.pem", "./tls/key.pem"))';
  const redirect = 'go http.ListenAndServe(":80", http.HandlerFunc(redirect))';
  assert.throws(
    () => plan({ 'cmd/web/main.go': body(`${redirect}\n${tls}`) }),
    (error: unknown) =>
      error instanceof Rejected &&
      error.findings[0].rule === 'plan/own-tls' &&
      error.findings[0].file === 'cmd/web/main.go',
  );
  assert.equal(plan({ 'main.go': body(`if secure {\n${tls}\n} else {\ns.ListenAndServe()\n}`) }).plan.strategy, 'go');
});

test('puts a program that looks for files next to its binary into the folder of the app', () => {
  const usual = plan({ 'main.go': body('http.ListenAndServe(":4000", nil)') });
  assert.match(line(usual, 'COPY --link --from=build /out'), / \/usr\/local\/bin\/server$/);
  const bound = plan({ 'main.go': body('ex, _ := os.Executable()\nopen(ex)\nhttp.ListenAndServe(":4000", nil)') });
  assert.match(line(bound, 'COPY --link --from=build /out'), / \/app\/moorage-server$/);
  assert.match(line(bound, 'CMD'), /exec \/app\/moorage-server/);
  assert.match(
    line(plan({ 'main.go': body('ex, _ := os.Executable()'), Procfile: 'web: bin/x -a' }), 'CMD'),
    /exec \/app\/moorage-server -a/,
  );
});
