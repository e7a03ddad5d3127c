// Builds Ethernet frames by hand, for what an ordinary socket cannot send. For tests.

/** A UDP datagram in a frame. */
export interface Datagram {
  from: { mac: string; address: string };
  to: { mac: string; address: string };
  fromPort: number;
  port: number;
  text: string;
  /** Adds an 802.1Q tag with this VLAN id (0: priority only, which a receiver takes as untagged). */
  vlan?: number;
}

/** The frame's octets. */
export function datagramFrame({ from, to, fromPort, port, text, vlan }: Datagram): Uint8Array {
  const payload = Buffer.from(text);
  const udp = Buffer.alloc(8);
  for (const [index, value] of [fromPort, port, 8 + payload.length, 0].entries()) udp.writeUInt16BE(value, index * 2);
  const ip = Buffer.from([0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, ...octets(from.address), ...octets(to.address)]);
  ip.writeUInt16BE(ip.length + udp.length + payload.length, 2);
  ip.writeUInt16BE(checksum(ip), 10);
  const tag = vlan === undefined ? [] : [0x81, 0x00, vlan >> 8, vlan & 255];
  return Buffer.concat([Buffer.from([...mac(to.mac), ...mac(from.mac), ...tag, 0x08, 0x00]), ip, udp, payload]);
}

/** An ARP announcement that `address` is at `mac`. */
export function arpFrame(sender: { mac: string; address: string }): Uint8Array {
  const [ether, ip] = [mac(sender.mac), octets(sender.address)];
  return Buffer.from([
    255,
    255,
    255,
    255,
    255,
    255,
    ...ether,
    8,
    6,
    0,
    1,
    8,
    0,
    6,
    4,
    0,
    1,
    ...ether,
    ...ip,
    0,
    0,
    0,
    0,
    0,
    0,
    ...ip,
  ]);
}

function octets(address: string): number[] {
  return address.split('.').map(Number);
}

function mac(text: string): number[] {
  return text.split(':').map((octet) => Number.parseInt(octet, 16));
}

function checksum(header: Buffer): number {
  let sum = 0;
  for (let offset = 0; offset < header.length; offset += 2) sum += header.readUInt16BE(offset);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}
