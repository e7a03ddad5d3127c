// Makes the node's images that apps first need while they are built or started, one at a time, and reports each to the
// apps that wait for it.
import type { NeededImage } from '../../crds/status.ts';
import type { PreparedImage } from '../../controller/steps/prepared-images.ts';
import { images, type ImageRecipe } from '../../localnode/images/catalog.ts';
import { buildProgramSpec, stopProcess, type ProcessSpec } from '../../localnode/node/daemons/processes.ts';
import { processFolders } from '../../localnode/node/settings.ts';
import { listNames } from '../install/product.ts';

/** An app that waits for images, and what was reported to it last. */
export interface WaitingApp {
  readonly needed: readonly NeededImage[];
  readonly reports: readonly PreparedImage[];
}

export interface ImageMakerOptions {
  /** Makes an image and those that it is based on, pushes them, and returns the digest of the last. */
  readonly make: (image: ImageRecipe, report: (text: string) => void) => Promise<string>;
  readonly now?: () => Date;
}

/** A failure is taken for a passing one after this time, and the image is tried again. */
const retryMs = 10 * 60_000;

interface Work {
  readonly image: ImageRecipe;
  state: PreparedImage['state'];
  message?: string;
  digest?: string;
  at: Date;
}

/**
 * Its whole state is work in progress: if it is killed, apps still list what they need, and images that were finished are
 * found in the registry.
 */
export class ImageMaker {
  readonly #works = new Map<string, Work>();
  readonly #options: ImageMakerOptions;
  #queue: Promise<void> = Promise.resolve();
  #isBusy = false;

  constructor(options: ImageMakerOptions) {
    this.#options = options;
  }

  /** Whether an image is being made. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Starts what the app needs and returns what to report to it. Reports that still hold are kept. */
  answer({ needed, reports }: WaitingApp): PreparedImage[] {
    return needed.map((need) => {
      const known = reports.find(({ image, at }) => image === need.image && Date.parse(at) >= Date.parse(need.since));
      return known?.state === 'Ready' ? known : this.#report(need);
    });
  }

  /** Resolves when nothing is left to make. */
  async drain(): Promise<void> {
    await this.#queue;
  }

  #report(need: NeededImage): PreparedImage {
    const image = images.find((each) => each.on === 'demand' && listNames(each).includes(need.image));
    if (image === undefined)
      return {
        image: need.image,
        state: 'Failed',
        message: 'this node has no recipe for it',
        at: formatTime(this.#now()),
      };
    const { state, message, digest, at } = this.#start(image, need);
    return {
      image: need.image,
      state,
      ...(message === undefined ? {} : { message: message.slice(0, 300) }),
      ...(digest === undefined ? {} : { digest }),
      at: formatTime(at),
    };
  }

  /** Returns the work on the image. What ended before the app needed it is done again, which is quick if it is there. */
  #start(image: ImageRecipe, { since }: NeededImage): Work {
    const current = this.#works.get(image.name);
    if (current?.state === 'Preparing') return current;
    if (current !== undefined && formatTime(current.at) >= since && !this.#isRetried(current)) return current;
    const work: Work = {
      image,
      state: 'Preparing',
      message: describeDuration(image, this.#isBusy),
      at: this.#now(),
    };
    this.#works.set(image.name, work);
    this.#queue = this.#queue.then(() => this.#make(work));
    return work;
  }

  #isRetried({ state, at }: Work): boolean {
    return state === 'Failed' && this.#now().getTime() - at.getTime() > retryMs;
  }

  async #make(work: Work): Promise<void> {
    this.#isBusy = true;
    const usual = describeDuration(work.image, false);
    try {
      work.message = usual;
      work.digest = await this.#options.make(work.image, (text) => {
        work.message = `${usual}; now ${text}`;
      });
      work.state = 'Ready';
      delete work.message;
    } catch (error) {
      work.state = 'Failed';
      work.message = error instanceof Error ? error.message : String(error);
    }
    work.at = this.#now();
    this.#isBusy = false;
  }

  #now(): Date {
    return this.#options.now?.() ?? new Date();
  }
}

/** RFC 3339 with whole seconds, as in Kubernetes. */
function formatTime(date: Date): string {
  return date.toISOString().replace(/\.\d{3}Z$/, 'Z');
}

/** An image after those that it is based on, which have to be made first. */
export function listWithBases(image: ImageRecipe): ImageRecipe[] {
  const bases = images.filter(({ name }) => image.bases.includes(name));
  return [...new Set([...bases.flatMap(listWithBases), image])];
}

/** Seconds on two cores with an empty cache, by the folder of the image and without its base images. Others take 60. */
const usualSeconds: Readonly<Record<string, number>> = {
  bun: 15,
  deno: 15,
  maven: 15,
  golang: 30,
  rust: 120,
  elixir: 180,
};

function describeDuration(image: ImageRecipe, isQueued: boolean): string {
  const made = listWithBases(image).filter(({ on }) => on === 'demand');
  const seconds = made.reduce((sum, { folder }) => sum + (usualSeconds[folder] ?? 60), 0);
  const minutes = Math.max(1, Math.round(seconds / 60));
  return `${isQueued ? 'after another image, ' : ''}about ${minutes} minute${minutes === 1 ? '' : 's'}`;
}

export const imageMakerName = 'image-maker';

export function buildImageMakerSpec(): Promise<ProcessSpec> {
  return buildProgramSpec(processFolders, imageMakerName, {
    main: 'cli/node/image-maker-main.ts',
    sources: ['localnode/images', 'cli/node', 'crds', 'lib'],
    env: pickNetworkVariables(process.env),
  });
}

/** The variables of `up` that name proxies, package registries and certificate authorities. */
function pickNetworkVariables(variables: NodeJS.ProcessEnv): Record<string, string> {
  const network = /_proxy$|^(?:pip|npm_config|uv)_|^go(?:proxy|sumdb|nosumdb|private|noproxy)$|cert|_ca_|_cainfo$/i;
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) =>
      value === undefined || !network.test(name) ? [] : [[name, value] as const],
    ),
  );
}

/** Stops it, also while it makes an image: what it has not finished is made again. */
export async function stopImageMaker(): Promise<void> {
  await stopProcess(processFolders, imageMakerName, 10);
}
