// Moorage's release on the one-machine node: the chart with this node's settings, installed first without the services
// behind tools whose images are still to be made, and then with them.
import { join } from 'node:path';
import { binary } from '../../localnode/binaries/build.ts';
import { serviceImages, servicesOnDemand } from '../../localnode/images/services.ts';
import { builtServices, missingImages, offeredServices } from './missing-images.ts';
import type { ImageRecipe } from '../../localnode/images/recipe.ts';
import { confinedClass } from '../../localnode/node/disk/confined.ts';
import type { GatewayPorts } from '../../localnode/node/gateway/ports.ts';
import { appsQuota } from '../../localnode/node/room.ts';
import { paths } from '../../localnode/paths.ts';
import { installChart, releaseValues } from './helm.ts';
import { packageSettings } from './package-hosts.ts';
import { sharesOf, type ToolServiceName } from './tool-services.ts';

export const productTargets = ['moorage', 'moorage-workers', 'moorage-pipeline'] as const;
export type ProductTarget = (typeof productTargets)[number];

export interface NodeReleaseOptions {
  readonly ports: () => GatewayPorts;
  /** Those that this run builds. */
  readonly images: readonly ImageRecipe[];
  /** Services behind tools that are wanted, for which apps leave room. */
  readonly tools: readonly ToolServiceName[];
}

export class NodeRelease {
  /** The product's images as pods pull them, once they are pushed. */
  readonly references = new Map<ProductTarget, string>();
  readonly tools: readonly ToolServiceName[];
  readonly #options: NodeReleaseOptions;

  constructor(options: NodeReleaseOptions) {
    this.#options = options;
    this.tools = options.tools;
  }

  /** Installs or upgrades it, with settings of services behind tools. */
  async install(tools: readonly string[]): Promise<void> {
    const { ports, images } = this.#options;
    const settings = [
      `image=${this.references.get('moorage') ?? ''}`,
      `workers.image=${this.references.get('moorage-workers') ?? ''}`,
      `pipelineImage=${this.references.get('moorage-pipeline') ?? ''}`,
      `externalPort=${ports().https}`,
      `apps.runtimeClassName=${confinedClass}`,
      `registry.missingImages={${(await missingImages(images)).join(',')}}`,
      ...(await builtServices()),
      ...(await offeredServices(images)),
      ...appsQuota((await sharesOf(this.tools)).requests),
      ...(await packageSettings()),
      ...tools,
    ];
    await installChart(this.#target(), [join(paths.root, 'cli', 'values.local.yaml')], settings);
  }

  /** Images of services that this run builds. They have to be there first, since the chart names them by digest. */
  serviceImages(): string[] {
    const coming = new Set(this.#options.images);
    return [...serviceImages, ...servicesOnDemand].filter((image) => coming.has(image)).map(({ name }) => name);
  }

  /** Values that it was last given. */
  async values(): Promise<unknown> {
    return await releaseValues(this.#target());
  }

  #target(): { helm: string; kubeconfig: string } {
    return { helm: binary('helm', 'helm'), kubeconfig: paths.kubeconfig };
  }
}
