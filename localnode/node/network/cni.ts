// The pod network as the CNI plugins read it: one bridge, addresses by host-local, published ports by portmap.

export interface PodNetwork {
  bridge: string;
  /** The range that this node hands out. */
  nodePodCidr: string;
}

/** A CNI configuration list. `dataDir` keeps the addresses in use; it must not outlive a restart of the machine. */
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
