// Ruby apps go through the whole pipeline: gems of a lock, one of them compiled, in the image that builds, and what comes
// out answers in the one without a compiler. The gems are in the repository, since no registry of gems is asked here.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { isImageBuilt } from '../../../localnode/images/build.ts';
import { buildResult } from '../../../controller/pipeline/contract.ts';
import { addDebianGems, addGem } from '../../support/pipeline/gems.ts';
import { answerOf } from '../../support/pipeline/images.ts';
import { startLab, type Lab } from '../../support/pipeline/lab.ts';
import { mit } from '../../support/pipeline/sample.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

const greeting = {
  'ext/greeting/extconf.rb': 'require "mkmf"\ncreate_makefile("greeting/greeting")\n',
  'ext/greeting/greeting.c':
    '#include <ruby.h>\nstatic VALUE hello(VALUE self) { return rb_str_new_cstr("hello from C"); }\nvoid Init_greeting(void) { rb_define_singleton_method(rb_define_module("Greeting"), "hello", hello, 0); }\n',
  'lib/greeting.rb': 'require "greeting/greeting"\n',
};

/** With a patch level of Ruby that no image has, and a gem for development that is nowhere. */
const gemfile = (ruby: string): string =>
  `source "https://rubygems.org"\nruby "${ruby}.0"\ngem "greeting"\ngem "rack"\ngem "webrick"\ngroup :development do\n  gem "nowhere"\nend\n`;
/** The Bundler that wrote it cannot be had either. */
const lock = (ruby: string, rack: string, webrick: string): string =>
  `GEM
  remote: https://rubygems.org/
  specs:
    greeting (1.0.0)
    nowhere (1.0.0)
    rack (${rack})
    webrick (${webrick})

PLATFORMS
  ruby

DEPENDENCIES
  greeting
  nowhere
  rack
  webrick

RUBY VERSION
   ruby ${ruby}.0p0

BUNDLED WITH
   2.3.7
`;

const code =
  'require "greeting"\nrun ->(_) { [200, {}, ["#{Greeting.hello} on Rack #{Rack.release}, Ruby #{RUBY_VERSION}"]] }\n';
const versions = [
  ['3.1', ['ruby-3.1']],
  ['3.3', ['debian-trixie', 'ruby-3.3']],
] as const;

for (const [ruby, images] of versions)
  test(`a Rack app with a compiled gem becomes an image of Ruby ${ruby} that responds as an unprivileged user`, async ({
    skip,
  }) => {
    const image = `ruby-${ruby}`;
    skip(!(await isImageBuilt(image)), `not built on this machine: ${image} (npm run up -- --base-images planned)`);
    for (const each of images) await lab.addImage(each);
    const ended = await lab.through(`rack-${ruby.replace('.', '-')}`, {
      files: { LICENSE: mit, Gemfile: gemfile(ruby), 'config.ru': code },
      change: async (folder, git) => {
        const cache = join(folder, 'vendor', 'cache');
        const { rack, webrick } = await addDebianGems(cache);
        await addGem(cache, { name: 'greeting', version: '1.0.0', extensions: ['ext/greeting/extconf.rb'] }, greeting);
        await writeFile(join(folder, 'Gemfile.lock'), lock(ruby, rack, webrick));
        git('add', '--all', '--force');
      },
    });
    assert.equal(ended.code, 0, ended.log.slice(-3000));
    assert.doesNotMatch(ended.log, /#\d+ [\d.]+ moorage-warning/);
    const { image: built, port } = buildResult.parse(ended.message);
    assert.equal(port, 8080);
    const said = await answerOf(lab, built, port, '/');
    assert.match(said, /hello from C on Rack 2\.\d+\.\d+, /);
    assert.ok(said.includes(`Ruby ${ruby}.`));
    assert.match(said, /user=1000/);
  });
