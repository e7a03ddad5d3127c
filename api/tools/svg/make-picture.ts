// Makes a picture in workers: what resvg cannot draw as PNG goes to the browser.
import type { WorkerCall, WorkerTask, Workers } from '../engine/workers/workers.ts';
import { browserTask } from '../browser/task.ts';
import type { PictureOptions } from './draw.ts';
import { picture, type Picture } from './picture.ts';

export async function makePicture(
  workers: Workers,
  task: WorkerTask,
  call: WorkerCall,
  { format, scale }: PictureOptions,
): Promise<Picture> {
  const made = picture.parse(await workers.run(task, call));
  if (made.format === format) return made;
  const drawn = picture.parse(await workers.run(browserTask({ kind: 'svg', svg: made.bytes, scale }), call));
  return { ...drawn, warnings: made.warnings };
}
