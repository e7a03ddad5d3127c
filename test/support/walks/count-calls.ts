// Preloaded into a program that a walk measures (`node --import`): counts the calls of its functions, and writes what V8 counted
// into a file of the folder MOORAGE_WALKS when it gets SIGUSR2, and when it ends.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { join } from 'node:path';

const { MOORAGE_WALKS: folder = '' } = process.env;
let files = 0;

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/** Writes the calls since the last time, and sets the counters back to zero. The session answers before `post` returns. */
function writeCalls(): void {
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    if (error !== null) throw error;
    const file = join(folder, `${process.pid}-${files}.json`);
    files += 1;
    mkdirSync(folder, { recursive: true });
    // Takes its name once it is whole.
    writeFileSync(`${file}.draft`, JSON.stringify(result.filter(({ url }) => url.startsWith('file:'))));
    renameSync(`${file}.draft`, file);
  });
}

process.on('SIGUSR2', writeCalls);
process.on('exit', writeCalls);
