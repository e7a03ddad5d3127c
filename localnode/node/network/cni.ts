// Renders the pod network's CNI configuration: one bridge, addresses from host-local, published ports from portmap.

export interface PodNetwork {
  bridge: string;
  /** The address range that this node assigns. */
  nodePodCidr: string;
}

/** Renders a CNI configuration list. `dataDir` stores the addresses in use; it must not survive a reboot. */
export function renderCniConfig({ bridge, nodePodCidr }: PodNetwork, dataDir: string): string {
  return JSON.stringify({
    cniVersion: '1.0.0',
    name: 'moorage',
    plugins: [
      {
        type: 'bridge',
        bridge,
        isGateway: true,
        ipMasq: false,
        hairpinMode: true,
        ipam: {
          type: 'host-local',
          dataDir,
          ranges: [[{ subnet: nodePodCidr }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'portmap', capabilities: { portMappings: true }, snat: true },
    ],
  });
}
